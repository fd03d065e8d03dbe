#include "infer/generate.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/problem.h"
#include "infer/answer_text.h"

namespace transept {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Prompt encode_prompt(const ArchSpec& spec, const Tokenizer& tokenizer, std::string_view text, int64_t context,
                     const std::string& where) {
  Prompt prompt;
  if (spec.encoder_decoder()) {
    prompt.source = encode_source(tokenizer, text);
    if (prompt.source.empty()) throw InputError(where, "is empty", "give the text to answer");
    const std::optional<int32_t> start = decoder_start(tokenizer);
    if (!start)
      throw InputError("tokenizer", "has no token to begin an answer with", "give it a begin or an end token");
    prompt.tokens = {*start};
  } else {
    prompt.tokens = tokenizer.encode(text, Specials::kAdd);
    if (prompt.tokens.empty() && tokenizer.bos()) prompt.tokens.push_back(*tokenizer.bos());
    if (prompt.tokens.empty())
      throw InputError(where, "is empty, and the model has no token to begin with", "give a prompt");
  }
  if (prompt.length() > context) {
    throw InputError(
        where,
        "has " + std::to_string(prompt.length()) + " tokens, more than the context of " + std::to_string(context),
        "shorten it");
  }
  return prompt;
}

std::span<const float> read_prompt(Decoder& decoder, const Prompt& prompt) {
  TRANSEPT_CHECK(prompt.kept == 0 || (prompt.kept == decoder.position() && prompt.source.empty()));
  if (prompt.kept == 0) decoder.reset();
  if (!prompt.source.empty()) decoder.read_source(prompt.source);
  return decoder.feed(std::span(prompt.tokens).subspan(static_cast<size_t>(prompt.kept)));
}

size_t known_tokens(const ArchSpec& spec, const Tokenizer& tokenizer) {
  return static_cast<size_t>(std::min(spec.vocab_size, tokenizer.vocab_size()));
}

int64_t longest_answer(const Decoder& decoder, const GenerateOptions& options) {
  return std::min(options.max_tokens, decoder.context() - decoder.position() + 1);
}

bool ends_text(const GenerateOptions& options, const Tokenizer& tokenizer, int32_t token) {
  if (options.ignore_eos) return false;
  return tokenizer.eos() == token ||
         std::find(options.end_tokens.begin(), options.end_tokens.end(), token) != options.end_tokens.end();
}

Generation generate(Decoder& decoder, const Tokenizer& tokenizer, std::string_view text, const GenerateOptions& options,
                    const std::function<bool(std::string_view)>& emit) {
  return generate(decoder, tokenizer, encode_prompt(decoder.spec(), tokenizer, text, decoder.prompt_context()), options,
                  emit);
}

Generation generate(Decoder& decoder, const Tokenizer& tokenizer, const Prompt& prompt, const GenerateOptions& options,
                    const std::function<bool(std::string_view)>& emit) {
  Generation result;
  result.prompt_tokens = prompt.length();
  result.finish_reason = "length";
  TokenSampler sampler(options.sampling);
  AnswerText answer(tokenizer, options.stop);
  bool wanted = true;
  const auto give = [&](std::string piece) {
    result.text += piece;
    if (emit && !piece.empty()) wanted = emit(piece);
  };

  const size_t known = known_tokens(decoder.spec(), tokenizer);
  auto start = Clock::now();
  std::span<const float> logits = read_prompt(decoder, prompt);
  result.prefill_tokens_per_second = static_cast<double>(result.prompt_tokens - prompt.kept) / seconds_since(start);
  const int64_t longest = longest_answer(decoder, options);
  start = Clock::now();
  int64_t fed = 0;
  while (static_cast<int64_t>(result.tokens.size()) < longest) {
    const int32_t token = sampler.next(logits.first(known));
    if (ends_text(options, tokenizer, token)) {
      result.finish_reason = "stop";
      break;
    }
    result.tokens.push_back(token);
    give(answer.push(token));
    if (answer.stopped() || !wanted) break;
    if (static_cast<int64_t>(result.tokens.size()) < longest) {
      logits = decoder.feed({&token, 1});
      ++fed;
    }
  }
  give(answer.finish());
  if (answer.stopped()) result.finish_reason = "stop";
  if (fed > 0) result.decode_tokens_per_second = static_cast<double>(fed) / seconds_since(start);
  return result;
}

}  // namespace transept
