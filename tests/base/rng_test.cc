#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace transept {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of Random123 1.14 (tests/kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0 (the digits of pi)
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, StreamsSubstreamsAndSeedsDiffer) {
  const CounterRng base(1, Stream::kInit);
  EXPECT_EQ(base.words(5), CounterRng(1, Stream::kInit).words(5));
  EXPECT_NE(base.words(5), CounterRng(1, Stream::kData).words(5));
  EXPECT_NE(base.words(5), CounterRng(1, Stream::kInit, 1).words(5));
  EXPECT_NE(base.words(5), CounterRng(2, Stream::kInit).words(5));
  EXPECT_NE(base.words(5), base.words(6));
}

TEST(CounterRng, MomentsOfUniformAndNormal) {
  const CounterRng rng(7, Stream::kTest);
  constexpr int kDraws = 200000;
  double u1 = 0, u2 = 0, n1 = 0, n2 = 0, n4 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform(static_cast<uint64_t>(i)), n = rng.normal(static_cast<uint64_t>(i));
    ASSERT_TRUE(u >= 0 && u < 1 && std::isfinite(n));
    u1 += u / kDraws;
    u2 += u * u / kDraws;
    n1 += n / kDraws;
    n2 += n * n / kDraws;
    n4 += n * n * n * n / kDraws;
  }
  const double sigma = 5 / std::sqrt(kDraws);  // five standard errors of a variable of unit variance
  EXPECT_NEAR(u1, 1.0 / 2, sigma * std::sqrt(1.0 / 12));
  EXPECT_NEAR(u2, 1.0 / 3, sigma * std::sqrt(4.0 / 45));
  EXPECT_NEAR(n1, 0, sigma);
  EXPECT_NEAR(n2, 1, sigma * std::sqrt(2.0));
  EXPECT_NEAR(n4, 3, sigma * std::sqrt(96.0));
}

TEST(CounterRng, BelowIsUniformAndInRange) {
  const CounterRng rng(3, Stream::kTest);
  constexpr uint64_t kBound = 7, kDraws = 70000;
  std::vector<double> counts(kBound);
  for (uint64_t i = 0; i < kDraws; ++i) {
    const uint64_t x = rng.below(i, kBound);
    ASSERT_LT(x, kBound);
    ++counts[x];
  }
  for (const double c : counts) EXPECT_NEAR(c, 10000, 5 * std::sqrt(10000 * 6.0 / 7));
  EXPECT_EQ(rng.below(0, 1), 0u);
}

TEST(Permute, IsABijectionOfEverySize) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 255, 257, 1000, 4096, 4097}) {
    for (const uint64_t tweak : {0, 1, 2}) {
      std::vector<bool> hit(n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t image = permute(i, n, 11, tweak);
        ASSERT_LT(image, n);
        ASSERT_FALSE(hit[image]) << n;
        hit[image] = true;
      }
    }
  }
  EXPECT_LT(permute(123456789, uint64_t{1} << 40, 1, 1), uint64_t{1} << 40);
}

TEST(Permute, DependsOnSeedAndTweakAndMixes) {
  constexpr uint64_t kN = 1000;
  int fixed = 0, same_seed = 0, same_tweak = 0, neighbours = 0;
  for (uint64_t i = 0; i < kN; ++i) {
    const uint64_t x = permute(i, kN, 1, 1);
    fixed += x == i;
    same_seed += x == permute(i, kN, 2, 1);
    same_tweak += x == permute(i, kN, 1, 2);
    neighbours += permute((i + 1) % kN, kN, 1, 1) == x + 1;
  }
  for (const int hits : {fixed, same_seed, same_tweak, neighbours}) EXPECT_LE(hits, 10);  // one is expected by chance
}

}  // namespace
}  // namespace transept
