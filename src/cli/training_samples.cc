#include "cli/training_samples.h"

#include <algorithm>

#include "infer/decoder.h"
#include "infer/generate.h"
#include "text/utf8.h"

namespace transept {
namespace {

constexpr int64_t kTokens = 300;   // that are written at the most
constexpr int64_t kContext = 128;  // of an example at the most: what a person reads at a glance

// Ids as a person reads them: specials by name, but for the begin and end tokens around the whole.
class Reader {
 public:
  explicit Reader(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::string token(int32_t id) const {
    return tokenizer_.is_special(id) ? tokenizer_.piece(id) : tokenizer_.bytes_of(id);
  }

  template <class F>
  std::string text(std::span<const int32_t> ids, const F& write) const {
    size_t begin = 0, end = ids.size();
    if (begin < end && tokenizer_.bos() == ids[begin]) ++begin;
    if (begin < end && tokenizer_.eos() == ids[end - 1]) --end;
    std::string out;
    for (size_t i = begin; i < end; ++i) out += write(i);
    return repair_utf8(out);
  }
  std::string text(std::span<const int32_t> ids) const {
    return text(ids, [&](size_t i) { return token(ids[i]); });
  }

  // The most likely of the tokenizer's tokens; the model's vocabulary may be padded beyond them.
  int32_t best(std::span<const float> logits) const {
    const auto known = logits.first(std::min(logits.size(), static_cast<size_t>(tokenizer_.vocab_size())));
    return static_cast<int32_t>(std::max_element(known.begin(), known.end()) - known.begin());
  }

 private:
  const Tokenizer& tokenizer_;
};

TrainingSample guesses(const Model& model, ThreadPool& pool, const Reader& reader, std::span<const int32_t> tokens,
                       std::span<const int32_t> targets) {
  const auto vocab = static_cast<size_t>(model.spec().vocab_size);
  std::vector<float> logits(tokens.size() * vocab);
  forward_logits(model, pool, tokens, logits);
  const auto asked = [&](size_t i) { return targets[i] != kIgnoredTarget; };
  TrainingSample sample;
  sample.source = reader.text(tokens);
  sample.text = reader.text(tokens, [&](size_t i) {
    if (!asked(i)) return reader.token(tokens[i]);
    std::string guess = reader.token(reader.best(std::span(logits).subspan(i * vocab, vocab)));
    return guess.insert(0, 1, '[') + ']';
  });
  sample.target = reader.text(tokens, [&](size_t i) { return reader.token(asked(i) ? targets[i] : tokens[i]); });
  return sample;
}

std::vector<int32_t> greedy_answer(const Model& model, ThreadPool& pool, const Tokenizer& tokenizer,
                                   const Reader& reader, std::span<const int32_t> source, int32_t start,
                                   int64_t context) {
  Decoder decoder(model, pool, context, static_cast<int64_t>(source.size()));
  decoder.read_source(source);
  std::vector<int32_t> answer;
  for (int32_t token = start; decoder.position() < context;) {
    token = reader.best(decoder.feed({&token, 1}));
    if (tokenizer.eos() == token) break;
    answer.push_back(token);
  }
  return answer;
}

}  // namespace

TrainingSample sample_text(const Model& model, ThreadPool& pool, const Tokenizer& tokenizer,
                           const std::string& prompt) {
  GenerateOptions options;
  options.max_tokens = kTokens;
  options.sampling = {.temperature = 0.8, .top_k = 0, .top_p = 0.95, .min_p = 0, .seed = 1};
  const int64_t wanted = static_cast<int64_t>(tokenizer.encode(prompt, Specials::kAdd).size()) + options.max_tokens + 1;
  Decoder decoder(model, pool, std::min(model.spec().max_position_embeddings, wanted));
  return {.text = prompt + generate(decoder, tokenizer, prompt, options).text, .source = {}, .target = {}};
}

TrainingSample sample_example(const Model& model, ThreadPool& pool, const Tokenizer& tokenizer,
                              const Vocabulary& vocabulary, const Split& held_out, const TrainConfig& config) {
  const Sampler sampler(held_out, std::min(config.context, kContext), 1, config.seed, config.examples, vocabulary);
  const Batch batch = sampler.batch(0);
  // Documents that do not see each other are several sequences; the first is as good as any.
  const auto first = [](const std::vector<int32_t>& rows, const BatchLayout& layout) {
    return std::span(rows).first(static_cast<size_t>(layout.front().rows));
  };
  const Reader reader(tokenizer);
  const auto targets = first(batch.targets, batch.layout);
  if (batch.source_layout.empty()) return guesses(model, pool, reader, first(batch.tokens, batch.layout), targets);
  const auto source = first(batch.source_tokens, batch.source_layout);
  const int64_t context = std::min({config.context, model.spec().max_position_embeddings, kTokens});
  const auto answer = greedy_answer(model, pool, tokenizer, reader, source, batch.tokens.front(), context);
  return {.text = reader.text(answer), .source = reader.text(source), .target = reader.text(targets)};
}

}  // namespace transept
