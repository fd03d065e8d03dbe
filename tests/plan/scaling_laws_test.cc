// Published figures of every set of constants, and the closed form of the optimum against a search.
#include "plan/scaling_laws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/quantity.h"
#include "support/tolerances.h"

namespace transept {
namespace {

const ScalingLaw& law(const std::string& name) {
  const auto& laws = published_laws();
  return *std::find_if(laws.begin(), laws.end(), [&](const ScalingLaw& l) { return l.name == name; });
}

#define EXPECT_CLOSE(actual, expected, relative) EXPECT_NEAR(actual, expected, std::abs(expected) * (relative))

TEST(ScalingLaws, RuleOfThumb) {
  const Frontier& line = law("rule-of-thumb").frontier;
  for (const double params : {1e9, 7e9, 13e9, 70e9}) {
    EXPECT_EQ(line.at_params(params).tokens, 20 * params);
    EXPECT_EQ(line.at_params(params).flops, 120 * params * params);
  }
}

TEST(ScalingLaws, TokensAParameter) {
  constexpr double kBudgets[] = {1e18, 1e19, 1e21, 5.76e23, 3.8e25};
  const std::pair<const char*, std::vector<double>> published[] = {{"rule-of-thumb", {20, 20, 20, 20, 20}},
                                                                   {"chinchilla-3-body", {25.7, 32.1, 50.1, 92.7, 139}},
                                                                   {"chinchilla-3-tex", {18.6, 22.7, 33.9, 58.9, 84.8}},
                                                                   {"besiroglu", {25.7, 24.3, 21.6, 18.4, 16.6}}};
  for (const auto& [name, ratios] : published) {
    for (size_t i = 0; i < ratios.size(); ++i) {
      EXPECT_CLOSE(law(name).frontier.at_flops(kBudgets[i]).tokens_per_param(), ratios[i], tolerance::kThreeDigits)
          << name << " at " << kBudgets[i];
    }
  }
}

// Hoffmann et al. 2022, tables 3 and A3: parameters, FLOPs, tokens.
TEST(ScalingLaws, TablesOfThePaper) {
  struct Row {
    const char* name;
    double params, flops, tokens, bound;
  };
  for (const Row& r : {Row{"chinchilla-1", 1e9, 1.21e20, 20.2e9, tolerance::kRoundedExponent},
                       Row{"chinchilla-1", 67e9, 5.76e23, 1.5e12, tolerance::kRoundedExponent},
                       Row{"chinchilla-1", 1e13, 1.30e28, 216.2e12, tolerance::kRoundedExponent},
                       Row{"chinchilla-2", 1e9, 1.20e20, 20.0e9, tolerance::kRoundedExponent},
                       Row{"chinchilla-2", 67e9, 6.88e23, 1.7e12, tolerance::kRoundedExponent},
                       Row{"chinchilla-2", 1e13, 1.75e28, 292.0e12, tolerance::kRoundedExponent},
                       Row{"chinchilla-3-tex", 1e9, 1.62e20, 27.1e9, tolerance::kTableA3},
                       Row{"chinchilla-3-tex", 67e9, 1.71e24, 4.1e12, tolerance::kTableA3},
                       Row{"chinchilla-3-tex", 1e12, 5.65e26, 94.1e12, tolerance::kTableA3}}) {
    const Allocation a = law(r.name).frontier.at_params(r.params);
    EXPECT_CLOSE(a.flops, r.flops, r.bound) << r.name << " " << r.params;
    EXPECT_CLOSE(a.tokens, r.tokens, r.bound) << r.name << " " << r.params;
  }
}

TEST(ScalingLaws, LlamaAndKaplan) {
  EXPECT_CLOSE(law("llama3").frontier.at_flops(1e22).tokens, 0.29 * std::pow(1e22, 0.53), tolerance::kClosedForm);
  EXPECT_CLOSE(law("llama3").frontier.at_flops(3.8e25).tokens, 0.29 * std::pow(3.8e25, 0.53), tolerance::kClosedForm);
  EXPECT_CLOSE(law("llama3-405b").frontier.at_flops(3.8e25).tokens, 16.55e12, tolerance::kClosedForm);
  EXPECT_CLOSE(law("kaplan").frontier.at_flops(8.64e19).params, 1.3e9, tolerance::kClosedForm);
  EXPECT_CLOSE(law("kaplan").frontier.at_flops(8.64e22).params, 1.3e9 * std::pow(1e3, 0.73), tolerance::kClosedForm);
}

TEST(ScalingLaws, ExponentsAndErrors) {
  EXPECT_CLOSE(law("chinchilla-3-tex").frontier.a(), 0.46, tolerance::kRoundedExponent);
  EXPECT_CLOSE(law("chinchilla-3-tex").frontier.b(), 0.54, tolerance::kRoundedExponent);
  EXPECT_CLOSE(law("besiroglu").frontier.a(), 0.513, tolerance::kThreeDigits);
  EXPECT_EQ(law("besiroglu").exponent_error, 0.020);
  EXPECT_EQ(law("besiroglu").standard_error->A, 124.5);
  EXPECT_EQ(law("chinchilla-2").params_exponent_range->high, 0.534);
  std::set<std::string> names;
  for (const ScalingLaw& l : published_laws()) {
    EXPECT_TRUE(names.insert(l.name).second) << l.name;
    EXPECT_FALSE(l.source.empty()) << l.name;
    EXPECT_CLOSE(l.frontier.a() + l.frontier.b(), 1.0, tolerance::kClosedForm) << l.name;
  }
}

TEST(ScalingLaws, GivenAnyOfThreeTheOthersFollow) {
  for (const ScalingLaw& l : published_laws()) {
    for (const double flops : {1e6, 1e18, 5.76e23, 1e40}) {
      const Allocation a = l.frontier.at_flops(flops);
      EXPECT_CLOSE(6 * a.params * a.tokens, flops, tolerance::kClosedForm) << l.name;
      EXPECT_CLOSE(l.frontier.at_params(a.params).flops, flops, tolerance::kClosedForm) << l.name;
      EXPECT_CLOSE(l.frontier.at_tokens(a.tokens).flops, flops, tolerance::kClosedForm) << l.name;
    }
    // The ends of what the command line lets in.
    for (const Allocation& a : {l.frontier.at_params(kParamsRange.low), l.frontier.at_params(kParamsRange.high),
                                l.frontier.at_tokens(kTokensRange.low), l.frontier.at_tokens(kTokensRange.high)}) {
      EXPECT_TRUE(std::isfinite(a.flops) && a.flops > 0) << l.name;
      EXPECT_TRUE(std::isfinite(a.params) && a.params > 0) << l.name;
      EXPECT_TRUE(std::isfinite(a.tokens) && a.tokens > 0) << l.name;
    }
  }
}

// No other split of the budget predicts a lower loss.
TEST(ScalingLaws, ClosedFormIsTheMinimum) {
  for (const ScalingLaw& l : published_laws()) {
    if (!l.loss) continue;
    for (const double flops : {1e18, 5.76e23}) {
      const Allocation a = l.frontier.at_flops(flops);
      const double least = l.loss->loss(a.params, a.tokens);
      for (const double factor : {0.01, 0.5, 0.99, 1.01, 2.0, 100.0}) {
        const double params = a.params * factor;
        EXPECT_GT(l.loss->loss(params, flops / (6 * params)), least) << l.name << " " << factor;
      }
    }
  }
}

TEST(ScalingLaws, OptimumOfALoss) {
  const ScalingLaw& l = law("besiroglu");
  const Allocation a = l.frontier.at_flops(1e22);
  const auto back = optimum_at_loss(*l.loss, l.loss->loss(a.params, a.tokens));
  ASSERT_TRUE(back);
  EXPECT_CLOSE(back->flops, 1e22, tolerance::kInvertedLoss);
  for (const double loss : {l.loss->E, 1.0, 0.0, -1.0, std::nan("")}) EXPECT_FALSE(optimum_at_loss(*l.loss, loss));
}

TEST(ScalingLaws, Json) {
  const Json with = to_json(law("besiroglu"), law("besiroglu").frontier.at_flops(1e22));
  for (const char* key : {"name", "source", "flops", "params", "tokens", "tokens_per_param", "loss", "constants"})
    EXPECT_FALSE(with.at(key).is_null()) << key;
  EXPECT_EQ(with.at("standard_error").at("B"), 1293.3);
  const Json without = to_json(law("kaplan"), law("kaplan").frontier.at_flops(1e22));
  EXPECT_TRUE(without.at("loss").is_null());
  EXPECT_TRUE(without.at("constants").is_null());
}

}  // namespace
}  // namespace transept
