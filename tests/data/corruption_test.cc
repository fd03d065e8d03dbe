// Corruption: shares within binomial bounds, exact counts, and that inputs and targets hold the text.
#include "data/corruption.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "kernels/cross_entropy.h"

namespace transept {
namespace {
using ::testing::ElementsAre;
using Ids = std::vector<int32_t>;

constexpr int32_t kMask = 259, kSentinel = 260;

const Vocabulary& vocabulary() {
  static const Vocabulary v = vocabulary_of(*extend_tokenizer(byte_tokenizer(), 100));
  return v;
}
Ids bytes(size_t n, uint64_t seed) {
  const CounterRng rng(seed, Stream::kTest);
  Ids ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(rng.below(i, 256)));
  return ids;
}

// Whether `hits` of `n` is within five standard deviations of the binomial distribution.
::testing::AssertionResult binomial(double hits, double n, double p) {
  const double deviations = (hits - n * p) / std::sqrt(n * p * (1 - p));
  if (std::abs(deviations) < 5) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << hits << " of " << n << " is " << deviations << " deviations from " << p;
}

TEST(Vocabulary, OfTheByteTokenizer) {
  const Vocabulary& v = vocabulary();
  EXPECT_EQ(v.start, 256);
  EXPECT_EQ(v.mask, kMask);
  EXPECT_EQ(v.first_sentinel, kSentinel);
  EXPECT_EQ(v.ordinary.size(), 256u);
  EXPECT_TRUE(v.special[257] && v.special[kMask] && !v.special['a']);
  EXPECT_TRUE(v.full_stop['.'] && !v.full_stop['a'] && !v.full_stop[256]);
}

TEST(MaskTokens, SharesAsPublished) {
  const Ids text = bytes(200'000, 1);
  Draws draws(3, 0);
  const MaskedText m = mask_tokens(text, vocabulary(), draws);
  double chosen = 0, masked = 0, kept = 0, other = 0;
  std::map<int32_t, int> drawn;
  for (size_t i = 0; i < text.size(); ++i) {
    if (m.targets[i] == kIgnoredTarget) {
      ASSERT_EQ(m.tokens[i], text[i]);
      continue;
    }
    ASSERT_EQ(m.targets[i], text[i]);
    ++chosen;
    masked += m.tokens[i] == kMask;
    kept += m.tokens[i] == text[i];
    if (m.tokens[i] != kMask && m.tokens[i] != text[i]) {
      ++other;
      ++drawn[m.tokens[i]];
      ASSERT_LT(m.tokens[i], 256);
    }
  }
  EXPECT_TRUE(binomial(chosen, static_cast<double>(text.size()), 0.15));
  EXPECT_TRUE(binomial(masked, chosen, 0.8));
  // A random token is the text's own once in 256.
  EXPECT_TRUE(binomial(kept, chosen, 0.1 + 0.1 / 256));
  EXPECT_TRUE(binomial(other, chosen, 0.1 * 255 / 256));
  EXPECT_EQ(drawn.size(), 256u);
  for (const auto& [id, n] : drawn) EXPECT_TRUE(binomial(n, other, 1.0 / 256)) << id;
}

TEST(MaskTokens, SpecialsAreLeftAndSomethingIsAlwaysAsked) {
  for (uint64_t i = 0; i < 300; ++i) {
    Draws draws(1, i);
    const MaskedText m = mask_tokens(Ids{257, 'a', 257, 'b'}, vocabulary(), draws);
    EXPECT_EQ(m.tokens[0], 257);
    EXPECT_EQ(m.targets[2], kIgnoredTarget);
    EXPECT_TRUE(m.targets[1] == 'a' || m.targets[3] == 'b');
  }
}

// Independence of neighbours: both of two are chosen as often as the product says.
TEST(MaskTokens, PositionsAreIndependent) {
  const Ids text = bytes(200'000, 2);
  Draws draws(4, 0);
  const MaskedText m = mask_tokens(text, vocabulary(), draws);
  double both = 0;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    both += m.targets[i] != kIgnoredTarget && m.targets[i + 1] != kIgnoredTarget;
  EXPECT_TRUE(binomial(both, static_cast<double>(text.size() / 2), 0.15 * 0.15));
}

TEST(DropSpans, LengthsAreThoseOfThePapersCode) {
  EXPECT_EQ(span_window(512), 568);  // and targets of 114, as published with the code
  EXPECT_EQ(span_counts(568).noise + span_counts(568).spans + 1, 114);
  EXPECT_EQ(span_counts(10).noise, 2);   // 1.5, half to even
  EXPECT_EQ(span_counts(30).noise, 4);   // 4.5, half to even
  EXPECT_EQ(span_counts(100).spans, 5);  // 15 / 3
  EXPECT_EQ(span_counts(2).noise, 1);
  for (int64_t length = 2; length < 700; ++length) {
    const auto source = [](int64_t n) { return n - span_counts(n).noise + span_counts(n).spans + 1; };
    EXPECT_LE(source(span_window(length)), length);
    EXPECT_GT(source(span_window(length) + 1), length);
  }
}

// Each sentinel of the source, replaced by what stands behind it in the target, gives the text.
Ids restored(const SourceAndTarget& x) {
  Ids text;
  for (const int32_t id : x.source) {
    if (id < kSentinel) {
      text.push_back(id);
      continue;
    }
    auto at = std::find(x.target.begin(), x.target.end(), id);
    while (++at != x.target.end() && *at < kSentinel) text.push_back(*at);
  }
  return text;
}

TEST(DropSpans, SourceAndTargetHoldTheText) {
  for (size_t n = 1; n < 150; ++n) {
    const Ids text = bytes(n, n);
    const SpanCounts counts = span_counts(static_cast<int64_t>(n));
    for (uint64_t i = 0; i < 20; ++i) {
      Draws draws(n, i);
      const SourceAndTarget x = drop_spans(text, vocabulary(), draws);
      ASSERT_EQ(restored(x), text);
      ASSERT_EQ(x.source.size(), n - static_cast<size_t>(counts.noise - counts.spans));
      ASSERT_EQ(x.target.size(), static_cast<size_t>(counts.noise + counts.spans + 1));
      int32_t next = kSentinel;
      for (const int32_t id : x.target) next += id == next;
      ASSERT_EQ(next, kSentinel + counts.spans + 1);
      ASSERT_EQ(x.target.back(), next - 1);
      ASSERT_EQ(n == 1, x.source[0] >= kSentinel);
      for (size_t k = 0; k + 1 < x.source.size(); ++k)
        ASSERT_FALSE(x.source[k] >= kSentinel && x.source[k + 1] >= kSentinel) << "two spans touch";
    }
  }
}

// Every division of the noise is as likely: of 6 noise tokens in 2 spans, the first has 1 to 5.
TEST(DropSpans, DivisionsAreUniform) {
  const Ids text = bytes(40, 1);
  ASSERT_EQ(span_counts(40).noise, 6);
  ASSERT_EQ(span_counts(40).spans, 2);
  std::map<std::ptrdiff_t, int> first;
  constexpr int kTimes = 20'000;
  for (uint64_t i = 0; i < kTimes; ++i) {
    Draws draws(1, i);
    const SourceAndTarget x = drop_spans(text, vocabulary(), draws);
    ++first[std::find(x.target.begin(), x.target.end(), kSentinel + 1) - x.target.begin() - 1];
  }
  ASSERT_EQ(first.size(), 5u);
  for (const auto& [length, n] : first) EXPECT_TRUE(binomial(n, kTimes, 0.2)) << length;
}

// The text with distinct tokens, so that what a mask replaced can be read off its neighbours.
TEST(Infill, ReplacesThreeTenthsByMasksOfPoissonSpans) {
  Ids text(250);
  std::iota(text.begin(), text.end(), 0);
  double spans = 0, full = 0, inserted = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    Draws draws(5, i);
    const Ids out = infill(text, vocabulary(), draws);
    ASSERT_LE(out.size(), text.size());
    int32_t next = 0;
    int64_t gone = 0;
    for (size_t k = 0; k < out.size();) {
      if (out[k] != kMask) {
        ASSERT_EQ(out[k], next);
        ++next;
        ++k;
        continue;
      }
      size_t end = k;
      while (end < out.size() && out[end] == kMask) ++end;
      const int32_t after = end < out.size() ? out[end] : static_cast<int32_t>(text.size());
      gone += after - next;
      spans += static_cast<double>(end - k);
      full += static_cast<double>(after - next);
      if (end - k == 1 && after == next) ++inserted;
      next = after;
      k = end;
    }
    ASSERT_EQ(next, static_cast<int32_t>(text.size()));
    ASSERT_EQ(gone, 75);  // 30 % of 250
  }
  // A span holds 3 on average; the last is cut to what is left, so a little less.
  EXPECT_NEAR(full / spans, 3, 0.15);
  // exp(-3) = 5 % of the spans have length 0; some stand beside another mask and are not seen here.
  EXPECT_GT(inserted / spans, 0.03);
  EXPECT_LT(inserted / spans, 0.055);
}

TEST(Infill, ShortTexts) {
  for (size_t n = 1; n < 12; ++n) {
    for (uint64_t i = 0; i < 50; ++i) {
      Draws draws(n, i);
      const Ids text = bytes(n, n), out = infill(text, vocabulary(), draws);
      ASSERT_LE(out.size(), n);
      const auto masks = std::count(out.begin(), out.end(), kMask);
      ASSERT_GE(masks, 1);
      ASSERT_EQ(static_cast<std::ptrdiff_t>(out.size()) - masks,
                static_cast<std::ptrdiff_t>(n - static_cast<size_t>(std::ceil(0.3 * static_cast<double>(n)))));
    }
  }
}

TEST(PermuteSentences, WholeSentencesInEveryOrder) {
  const Ids text{'a', '.', 'b', 'b', '.', 'c'};
  std::map<Ids, int> orders;
  for (uint64_t i = 0; i < 6000; ++i) {
    Draws draws(1, i);
    ++orders[permute_sentences(text, vocabulary(), draws)];
  }
  EXPECT_EQ(orders.size(), 6u);
  EXPECT_TRUE(orders.contains(text));
  EXPECT_TRUE(orders.contains(Ids{'c', 'b', 'b', '.', 'a', '.'}));
  for (const auto& [order, n] : orders) EXPECT_TRUE(binomial(n, 6000, 1.0 / 6));
}

TEST(Draws, ExamplesAndSeedsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t example = 0; example < 10; ++example) {
      Draws draws(seed, example), again(seed, example);
      for (int k = 0; k < 10; ++k) {
        const uint64_t bits = draws.bits();
        EXPECT_EQ(bits, again.bits());
        seen.insert(bits);
      }
    }
  }
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace transept
