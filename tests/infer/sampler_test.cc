// Sampling: edges, and frequencies against the softmax (B41's kind).
#include "infer/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace transept {
namespace {

const std::vector<float> kLogits{-1.f, 2.f, 0.5f, -3.f, 2.f};

std::map<int32_t, int> counts(const SamplingOptions& options, int draws = 10000) {
  TokenSampler sampler(options);
  std::map<int32_t, int> n;
  for (int i = 0; i < draws; ++i) ++n[sampler.next(kLogits)];
  return n;
}

TEST(Sampler, GreedyTakesTheFirstOfEquals) {
  TokenSampler sampler({.temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 3});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sampler.next(kLogits), 1);
}

TEST(Sampler, FrequenciesAreTheSoftmaxs) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const auto n = counts({.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 8});
    double total = 0;
    for (const float z : kLogits) total += std::exp(static_cast<double>(z) / temperature);
    for (size_t i = 0; i < kLogits.size(); ++i) {
      const double p = std::exp(static_cast<double>(kLogits[i]) / temperature) / total,
                   sd = std::sqrt(10000 * p * (1 - p));
      const auto at = n.find(static_cast<int32_t>(i));
      EXPECT_NEAR(at == n.end() ? 0 : at->second, 10000 * p, 4 * sd + 1) << i << " at " << temperature;
    }
  }
}

TEST(Sampler, FiltersKeepWhatTheySay) {
  const auto kept = [](const SamplingOptions& o) {
    std::string ids;
    for (const auto& [id, n] : counts(o)) ids += std::to_string(id);
    return ids;
  };
  EXPECT_EQ(kept({.temperature = 1, .top_k = 1, .top_p = 1, .min_p = 0, .seed = 1}), "1");
  EXPECT_EQ(kept({.temperature = 1, .top_k = 2, .top_p = 1, .min_p = 0, .seed = 1}), "14");
  EXPECT_EQ(kept({.temperature = 1, .top_k = 99, .top_p = 1, .min_p = 0, .seed = 1}), "01234");
  EXPECT_EQ(kept({.temperature = 1, .top_k = 0, .top_p = 1e-9, .min_p = 0, .seed = 1}), "1");
  EXPECT_EQ(kept({.temperature = 1, .top_k = 0, .top_p = 0.9, .min_p = 0, .seed = 1}), "124");
  EXPECT_EQ(kept({.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.2, .seed = 1}), "124");
  EXPECT_EQ(kept({.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.9, .seed = 1}), "14");
}

TEST(Sampler, TheSeedDecides) {
  const auto draw = [](uint64_t seed) {
    TokenSampler s({.temperature = 1.5, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(s.next(kLogits));
    return ids;
  };
  EXPECT_EQ(draw(4), draw(4));
  EXPECT_NE(draw(4), draw(5));
}

TEST(Sampler, NotANumberIsAnErrorAndInfinitiesAreNot) {
  TokenSampler sampler({});
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THROW(sampler.next(std::vector<float>{0.f, NAN, 1.f}), EnvironmentError);
  EXPECT_EQ(sampler.next(std::vector<float>{-inf, -inf, 3.f}), 2);
  EXPECT_EQ(sampler.next(std::vector<float>{0.f, inf, 3.f}), 1);
}

TEST(Sampler, OptionsOutOfRangeAreReportedTogether) {
  EXPECT_EQ((SamplingOptions{.temperature = -1, .top_k = -2, .top_p = 0, .min_p = 1, .seed = 0}).check().size(), 4u);
  EXPECT_EQ((SamplingOptions{.temperature = NAN, .top_k = 0, .top_p = 1.5, .min_p = 0, .seed = 0}).check().size(), 2u);
  EXPECT_TRUE(SamplingOptions{}.check().empty());
}

}  // namespace
}  // namespace transept
