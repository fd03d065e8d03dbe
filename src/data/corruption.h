// Corruption of token sequences for masked and denoising objectives. Everything is a pure function of the text and of
// draws by counter, so an example is that of (seed, index) whatever was asked before, and each epoch corrupts anew
// (dynamic masking, RoBERTa, arXiv:1907.11692 section 4.1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "text/tokenizer.h"

namespace transept {

// What corruption has to know of a vocabulary.
struct Vocabulary {
  std::optional<int32_t> start;  // what a decoder reads first
  std::optional<int32_t> bos, eos, mask, first_sentinel;
  int64_t sentinels = 0;
  std::vector<int32_t> ordinary;  // ids that stand for text: what a random token is drawn from
  std::vector<bool> special;      // by id
  std::vector<bool> full_stop;    // by id: its text ends with a full stop, spaces and line ends aside
};
Vocabulary vocabulary_of(const Tokenizer& tokenizer);

// The draws of one example, in order.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t example) : rng_(seed, Stream::kCorruption), next_(example << kBits) {}
  double uniform() { return rng_.uniform(next_++); }
  uint64_t below(uint64_t bound) { return rng_.below(next_++, bound); }
  uint64_t bits() { return rng_.bits64(next_++); }

 private:
  static constexpr int kBits = 28;  // more than four draws a token of the longest context
  CounterRng rng_;
  uint64_t next_;
};

// Masked tokens, BERT (arXiv:1810.04805) section 3.1: of the positions, kMaskedShare become targets; of these 80 % read
// the mask, 10 % a random token, 10 % stay. Specials are left alone. A text in which no position was chosen has one
// chosen for it. `targets` holds kIgnoredTarget elsewhere.
inline constexpr double kMaskedShare = 0.15, kReadsMask = 0.8, kReadsRandom = 0.1;
struct MaskedText {
  std::vector<int32_t> tokens, targets;
};
MaskedText mask_tokens(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws);

// Dropped spans, T5 (arXiv:1910.10683) section 3.1.4: kNoiseDensity of the tokens, in spans of kMeanSpan on average.
inline constexpr double kNoiseDensity = 0.15, kMeanSpan = 3;
struct SpanCounts {
  int64_t noise = 0, spans = 0;  // tokens dropped, and in how many spans
};
// As the paper's code counts (random_spans_noise_mask): rounded half to even, and at least one of each.
SpanCounts span_counts(int64_t tokens);
// The most tokens of text whose source, spans replaced and eos added, is no longer than `length`
// (random_spans_helper): 568 for 512.
int64_t span_window(int64_t length);
struct SourceAndTarget {
  std::vector<int32_t> source, target;
};
// Source: the text with each span replaced by a sentinel, in order. Target: each sentinel and what it replaced, and the
// next sentinel at the end, as in the paper's section; its code ends a target with eos in that place, which is as long.
// Spans are separated, and the text does not begin with one (unless it is a single token).
SourceAndTarget drop_spans(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws);

// Text infilling, BART (arXiv:1910.13461) section 2.2: spans of lengths drawn from Poisson(kMeanInfilled) that together
// hold kInfilledShare of the tokens, rounded up, become one mask each; a span of length 0 inserts a mask. No more are
// inserted than other spans save, so the result is never longer than the text.
inline constexpr double kInfilledShare = 0.3, kMeanInfilled = 3;
std::vector<int32_t> infill(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws);

// The same section: sentences, which end at full stops, in random order.
std::vector<int32_t> permute_sentences(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws);

}  // namespace transept
