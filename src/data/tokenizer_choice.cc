#include "data/tokenizer_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/problem.h"
#include "data/corruption.h"

namespace transept {
namespace {

// Tokens of a vocabulary below this are better as bytes.
constexpr int64_t kByteVocab = 1024;

int64_t bpe_size(const std::string& choice) {
  int64_t size = 0;
  const char* const end = choice.data() + choice.size();
  const auto [at, error] = std::from_chars(choice.data() + choice.find(':') + 1, end, size);
  if (error != std::errc() || at != end)
    throw InputError("--tokenizer", "\"" + choice + "\" names no size", "write it as bpe:4096");
  return size;
}

// How many sentinels are added to a vocabulary: a hundred, as T5 has, or what the context needs where that is more;
// less where the spec has no room for them.
int64_t sentinels_for(Objective objective, int64_t context, int64_t room) {
  if (objective != Objective::kSpan) return 0;
  constexpr int64_t kUsualSentinels = 100;
  const int64_t needed = span_counts(span_window(context)).spans + 1;
  return std::max(needed, std::min(room, std::max(kUsualSentinels, needed)));
}

bool needs_mask(Objective objective) { return objective == Objective::kMlm || objective == Objective::kDenoise; }

}  // namespace

std::unique_ptr<Tokenizer> choose_tokenizer(const std::string& choice, int64_t vocab_size, const TextFiles& texts,
                                            Objective objective, int64_t context) {
  const bool extend = needs_mask(objective) || objective == Objective::kSpan;
  std::unique_ptr<Tokenizer> tokenizer;
  const bool automatic = choice.empty();
  if (choice == "byte" || (automatic && vocab_size <= kByteVocab)) {
    tokenizer = byte_tokenizer();
  } else if (automatic || choice == "bpe" || choice.starts_with("bpe:")) {
    BpeOptions options;
    options.vocab_size = vocab_size;
    if (extend) options.vocab_size -= 1 + sentinels_for(objective, context, vocab_size / 2);
    if (choice.starts_with("bpe:")) options.vocab_size = bpe_size(choice);
    const auto views = texts.views();
    tokenizer = train_bpe(views, options);
  } else {
    tokenizer = load_tokenizer(choice);
  }
  if (extend) {
    const int64_t sentinels = sentinels_for(objective, context, vocab_size - tokenizer->vocab_size() - 1);
    tokenizer = extend_tokenizer(std::move(tokenizer), sentinels);
    if (tokenizer->vocab_size() > vocab_size) {
      throw InputError(
          "--tokenizer",
          fmt::format("has {} tokens with the mask and {} sentinels that the objective {} needs, more than "
                      "the spec's vocab_size of {}",
                      tokenizer->vocab_size(), tokenizer->sentinels(), objective_name(objective), vocab_size),
          "raise vocab_size, or use a smaller vocabulary");
    }
  }
  if (tokenizer->vocab_size() > vocab_size) {
    throw InputError(
        "--tokenizer",
        fmt::format("has {} tokens, more than the spec's vocab_size of {}", tokenizer->vocab_size(), vocab_size),
        "raise vocab_size or use a smaller vocabulary");
  }
  return tokenizer;
}

}  // namespace transept
