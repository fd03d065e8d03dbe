#include "study/score_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "support/throws.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr int64_t kQueries = 200, kKeys = 256;

// The variance of the scores is d_k, or 1 when they are scaled. Over n queries and m keys its estimate is
// tr(A B) / d_k with A and B the second moments of the queries and of the keys, whose relative variance is
// 2 / (d_k n) + 2 / (d_k m) + (2 + 2 / d_k) / (n m).
TEST(ScoreStatistics, VarianceIsTheHeadsSize) {
  for (const int64_t d : {1, 4, 16, 64, 256, 1024}) {
    const double size = static_cast<double>(d), n = kQueries, m = kKeys;
    const double error = std::sqrt(2 / (size * n) + 2 / (size * m) + (2 + 2 / size) / (n * m));
    for (const bool scaled : {false, true}) {
      const double deviation = score_statistics(d, scaled, kQueries, kKeys, 7).score_deviation;
      EXPECT_THAT(deviation * deviation / (scaled ? 1 : size), DoubleNear(1, tolerance::kStandardErrors * error))
          << d << (scaled ? " scaled" : "");
    }
  }
}

// Normal scores of variance 1 and many keys: the log of the sum of exponentials is ln n + 1/2, the mean score under the
// softmax is 1, and so the entropy ln n - 1/2.
TEST(ScoreStatistics, EntropyOfScaledScoresIsHalfANatBelowTheMost) {
  const ScoreStatistics s = score_statistics(512, true, 64, 4096, 3);
  EXPECT_THAT(s.entropy, DoubleNear(std::log(4096.0) - 0.5, tolerance::kManyKeys));
  EXPECT_THAT(s.entropy_share, DoubleNear(s.entropy / std::log(4096.0), tolerance::kDouble));
  EXPECT_EQ(s.saturated_share, 0);
  // E |ds|^2 = sum p^2 (1 - 2 p + sum p^2), which is about E[exp(2 s)] / (n E[exp(s)]^2) = e / n.
  EXPECT_THAT(s.score_gradient.median / std::sqrt(std::exp(1.0) / 4096), DoubleNear(1, tolerance::kManyKeysGradient));
}

// One key: a probability of 1 that nothing moves.
TEST(ScoreStatistics, OneKeyHasNoGradient) {
  const ScoreStatistics s = score_statistics(8, false, 5, 1, 0);
  EXPECT_EQ(s.entropy, 0);
  EXPECT_EQ(s.entropy_share, 1);
  EXPECT_EQ(s.largest_probability, 1);
  EXPECT_EQ(s.saturated_share, 1);
  for (const NormStatistics& n : {s.score_gradient, s.query_gradient, s.key_gradient}) {
    EXPECT_EQ(n.mean, 0);
    EXPECT_EQ(n.median, 0);
  }
}

// Of one element and unscaled, all is a function of the scores: with one query and two keys, p = 1 / (1 + exp(-|s|))
// is the larger probability, ds = p (1 - p) (dp_1 - dp_2) (1, -1), dq = ds_1 (k_1 - k_2) and dk = ds q.
TEST(ScoreStatistics, GradientsOfAQueryBetweenTwoKeys) {
  const CounterRng q_rng(9, Stream::kData, 0), k_rng(9, Stream::kData, 1), up_rng(9, Stream::kData, 2);
  const double q = q_rng.normal(0), k0 = k_rng.normal(0), k1 = k_rng.normal(1), s = q * (k0 - k1);
  const double p = 1 / (1 + std::exp(-s)), ds = p * (1 - p) * std::abs(up_rng.normal(0) - up_rng.normal(1));
  const ScoreStatistics got = score_statistics(1, false, 1, 2, 9);
  EXPECT_DOUBLE_EQ(got.largest_probability, std::max(p, 1 - p));
  EXPECT_DOUBLE_EQ(got.entropy, -p * std::log(p) - (1 - p) * std::log(1 - p));
  EXPECT_DOUBLE_EQ(got.score_gradient.mean, std::sqrt(2.0) * ds);
  EXPECT_DOUBLE_EQ(got.score_gradient.median, got.score_gradient.mean);
  EXPECT_DOUBLE_EQ(got.query_gradient.mean, ds * std::abs(k0 - k1));
  EXPECT_DOUBLE_EQ(got.key_gradient.mean, std::sqrt(2.0) * ds * std::abs(q));
}

// Without the scale, larger heads saturate and most gradients vanish; with it, the size of the head changes neither.
TEST(ScoreStatistics, OnlyUnscaledScoresSaturate) {
  const auto at = [](int64_t d, bool scaled) { return score_statistics(d, scaled, kQueries, kKeys, 1); };
  const ScoreStatistics small = at(4, false), large = at(1024, false), scaled = at(1024, true);
  EXPECT_GT(large.saturated_share, 0.5);
  EXPECT_LT(large.entropy_share, 0.1);
  EXPECT_LT(large.score_gradient.median, small.score_gradient.median / 5);
  EXPECT_EQ(scaled.saturated_share, 0);
  EXPECT_GT(scaled.entropy_share, 0.9);
}

TEST(ScoreStatistics, RefusesEmptySizesTogether) {
  EXPECT_THAT(input_error([] { score_statistics(0, true, -1, 0, 0); }),
              AllOf(HasSubstr("head_dim: is 0"), HasSubstr("queries: is -1"), HasSubstr("keys: is 0")));
}

}  // namespace
}  // namespace transept
