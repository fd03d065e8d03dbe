#include "data/examples.h"

#include <algorithm>

#include "base/check.h"

namespace transept {
namespace {

std::vector<int32_t> tokens_of(const Split& split, int64_t begin, int64_t tokens) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  split.copy(begin, tokens, ids.data());
  return ids;
}

// Tokens that `framed` adds to a text that has none of them.
int64_t frame_tokens(const Vocabulary& vocabulary) { return (vocabulary.bos ? 1 : 0) + (vocabulary.eos ? 1 : 0); }

}  // namespace

int64_t window_tokens(Objective objective, int64_t context, const Vocabulary& vocabulary) {
  switch (objective) {
    case Objective::kCausal:
      return context + 1;
    case Objective::kMlm:
      return context - frame_tokens(vocabulary);
    case Objective::kSpan:
      return span_window(context);
    case Objective::kDenoise:
    case Objective::kSeq2seq:
      return context - 1;
  }
  TRANSEPT_CHECK(false);
  return 0;
}

std::vector<int32_t> framed(std::span<const int32_t> text, const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  if (vocabulary.bos && (text.empty() || text.front() != *vocabulary.bos)) ids.push_back(*vocabulary.bos);
  ids.insert(ids.end(), text.begin(), text.end());
  if (vocabulary.eos && (text.empty() || text.back() != *vocabulary.eos)) ids.push_back(*vocabulary.eos);
  return ids;
}

void check_examples(const ExampleOptions& options, const Vocabulary& vocabulary, int64_t context) {
  Problems problems;
  const std::string name = std::string(objective_name(options.objective));
  const auto need = [&](bool there, const char* what) {
    if (there) return;
    problems.push_back({"tokenizer", "has no " + std::string(what) + ", which the objective " + name + " needs",
                        "use the tokenizer that a training with this objective made"});
  };
  const bool behind_encoder = options.objective != Objective::kCausal && options.objective != Objective::kMlm;
  if (options.objective == Objective::kMlm || options.objective == Objective::kDenoise)
    need(vocabulary.mask.has_value(), "mask token");
  if (behind_encoder) need(vocabulary.start.has_value(), "token to begin with (bos, pad or eos)");
  // A single token has nothing to be predicted from, or nothing that may be predicted; a span, its two sentinels.
  const int64_t least = options.objective == Objective::kSpan  ? 3
                        : options.objective == Objective::kMlm ? 2 + frame_tokens(vocabulary)
                        : options.objective != Objective::kCausal || options.separate_documents ? 2
                                                                                                : 1;
  const bool long_enough = context >= least;
  if (options.objective == Objective::kSpan && long_enough) {
    const int64_t wanted = span_counts(span_window(context)).spans + 1;
    if (vocabulary.sentinels < wanted) {
      problems.push_back({"tokenizer",
                          "has " + std::to_string(vocabulary.sentinels) + " sentinels, but a context of " +
                              std::to_string(context) + " needs " + std::to_string(wanted),
                          "use a shorter context, a vocab_size with room for more, or another --objective"});
    }
  }
  if (!long_enough) {
    problems.push_back({"--context", "of " + std::to_string(context) + " is too short here",
                        "allowed is " + std::to_string(least) + " or more"});
  }
  if (options.separate_documents && !vocabulary.eos)
    problems.push_back({"--separate-documents", "needs a tokenizer with an end-of-text token", "leave it out"});
  if (options.separate_documents && options.objective == Objective::kSeq2seq)
    problems.push_back({"--separate-documents", "does not apply to pairs", "leave it out"});
  if (options.permute_sentences && options.objective != Objective::kDenoise)
    problems.push_back({"--permute-sentences", "applies to the objective denoise only", "leave it out"});
  throw_if_any(std::move(problems));
}

void add_pair(std::span<const int32_t> source, std::span<const int32_t> target, const Vocabulary& vocabulary,
              Batch& batch) {
  TRANSEPT_CHECK(vocabulary.start);
  batch.add_source(source);
  std::vector<int32_t> tokens{*vocabulary.start};
  tokens.insert(tokens.end(), target.begin(), target.end() - 1);
  batch.add(tokens, target);
}

void add_example(std::span<const int32_t> text, const ExampleOptions& options, const Vocabulary& vocabulary,
                 Draws& draws, Batch& batch) {
  const auto close = [&](std::vector<int32_t> ids) {
    if (vocabulary.eos) ids.push_back(*vocabulary.eos);
    return ids;
  };
  switch (options.objective) {
    case Objective::kCausal:
      return batch.add(text.first(text.size() - 1), text.subspan(1));
    case Objective::kMlm: {
      const MaskedText masked = mask_tokens(framed(text, vocabulary), vocabulary, draws);
      return batch.add(masked.tokens, masked.targets);
    }
    case Objective::kSpan: {
      const SourceAndTarget spans = drop_spans(text, vocabulary, draws);
      return add_pair(close(spans.source), spans.target, vocabulary, batch);
    }
    case Objective::kDenoise: {
      const std::vector<int32_t> order = options.permute_sentences ? permute_sentences(text, vocabulary, draws)
                                                                   : std::vector<int32_t>(text.begin(), text.end());
      return add_pair(close(infill(order, vocabulary, draws)), close({text.begin(), text.end()}), vocabulary, batch);
    }
    case Objective::kSeq2seq:
      break;  // pairs are no text to make examples from
  }
  TRANSEPT_CHECK(false);
}

void add_window(const Split& split, int64_t begin, int64_t tokens, const ExampleOptions& options,
                const Vocabulary& vocabulary, Draws& draws, Batch& batch) {
  const std::vector<int32_t> ids = tokens_of(split, begin, tokens);
  if (!options.separate_documents) return add_example(ids, options, vocabulary, draws, batch);
  for (int64_t at = begin, d = split.document_of(begin); at < begin + tokens; ++d) {
    const int64_t end = std::min(split.document_begin(d) + split.document_tokens(d), begin + tokens);
    const auto part = std::span(ids).subspan(static_cast<size_t>(at - begin), static_cast<size_t>(end - at));
    // A document's last token has no successor.
    if (options.objective != Objective::kCausal || part.size() > 1)
      add_example(part, options, vocabulary, draws, batch);
    at = end;
  }
}

void add_line(const Split& split, int64_t d, int64_t context, const ExampleOptions& options,
              const Vocabulary& vocabulary, Draws& draws, Batch& batch) {
  int64_t tokens = split.document_tokens(d);
  // Where examples are closed anyway, the line's own end would be a second one.
  if (options.objective != Objective::kCausal) --tokens;
  tokens = std::min(tokens, window_tokens(options.objective, context, vocabulary));
  add_example(tokens_of(split, split.document_begin(d), tokens), options, vocabulary, draws, batch);
}

void add_pair(const Split& split, int64_t p, const Vocabulary& vocabulary, Batch& batch) {
  const auto document = [&](int64_t d) { return tokens_of(split, split.document_begin(d), split.document_tokens(d)); };
  add_pair(document(2 * p), document(2 * p + 1), vocabulary, batch);
}

}  // namespace transept
