// Over-training: equal loss, equal cost at the break-even, and the cheapest size against a search.
#include "plan/break_even.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/throws.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

constexpr ParametricLoss kLaw{.E = 1.8172, .A = 482.01, .B = 2085.43, .alpha = 0.3478, .beta = 0.3658};

#define EXPECT_CLOSE(actual, expected, relative) EXPECT_NEAR(actual, expected, std::abs(expected) * (relative))

Allocation optimal() { return Frontier::of(kLaw).at_flops(5.76e23); }
double optimal_loss() { return kLaw.loss(optimal().params, optimal().tokens); }

double lifetime(const LifetimeCost& cost, double params, double served) {
  return cost.train(params, *tokens_to_loss(kLaw, params, optimal_loss())) + cost.serve(params, served);
}

TEST(BreakEven, EqualLossAndEqualCost) {
  const LifetimeCost weighted{.train_mfu = 0.4, .serve_mfu = 0.1, .price_ratio = 0.7};
  for (const LifetimeCost& cost : {LifetimeCost{}, weighted}) {
    for (const double fraction : {0.9, 0.5, 0.2}) {
      const BreakEven b = break_even(kLaw, optimal(), fraction * optimal().params, cost, "--smaller");
      EXPECT_CLOSE(kLaw.loss(b.smaller.params, b.smaller.tokens), b.loss, tolerance::kClosedForm);
      EXPECT_CLOSE(b.loss, optimal_loss(), tolerance::kClosedForm);
      EXPECT_GT(b.extra_train_flops, 0);
      EXPECT_EQ(b.saved_flops_per_token, 2 * (optimal().params - b.smaller.params));
      const double served = b.served_tokens;
      EXPECT_CLOSE(lifetime(cost, b.smaller.params, served), lifetime(cost, optimal().params, served),
                   tolerance::kInvertedLoss);
      EXPECT_LT(lifetime(cost, b.smaller.params, 1.01 * served), lifetime(cost, optimal().params, 1.01 * served));
      EXPECT_GT(lifetime(cost, b.smaller.params, 0.99 * served), lifetime(cost, optimal().params, 0.99 * served));
    }
  }
}

TEST(BreakEven, ByHand) {
  // alpha = beta = 1, A = B = E = 1, C = 600: N = D = 10, L = 1.2. With M = 8: D' = 1 / (0.2 - 0.125) = 40 / 3.
  const ParametricLoss law{.E = 1, .A = 1, .B = 1, .alpha = 1, .beta = 1};
  const Allocation o = Frontier::of(law).at_flops(600);
  EXPECT_CLOSE(o.params, 10.0, tolerance::kClosedForm);
  EXPECT_CLOSE(least_params(law, 1.2), 5.0, tolerance::kClosedForm);
  const BreakEven b = break_even(law, o, 8, {}, "");
  EXPECT_CLOSE(b.smaller.tokens, 40.0 / 3, tolerance::kClosedForm);
  EXPECT_CLOSE(b.extra_train_flops, 40.0, tolerance::kInvertedLoss);
  EXPECT_CLOSE(b.served_tokens, 10.0, tolerance::kInvertedLoss);
  // Twice the price of serving, half the tokens; half the utilization of training, twice.
  EXPECT_CLOSE(break_even(law, o, 8, {.price_ratio = 2}, "").served_tokens, 5.0, tolerance::kInvertedLoss);
  EXPECT_CLOSE(break_even(law, o, 8, {.train_mfu = 0.5}, "").served_tokens, 20.0, tolerance::kInvertedLoss);
  EXPECT_CLOSE(break_even(law, o, 8, {.serve_mfu = 0.5}, "").served_tokens, 5.0, tolerance::kInvertedLoss);
}

TEST(BreakEven, WhatCannotBe) {
  const double least = least_params(kLaw, optimal_loss());
  EXPECT_FALSE(tokens_to_loss(kLaw, least * 0.999, optimal_loss()));
  EXPECT_TRUE(tokens_to_loss(kLaw, least * 1.001, optimal_loss()));
  EXPECT_THAT(input_error([&] { break_even(kLaw, optimal(), least * 0.999, {}, "--smaller"); }),
              HasSubstr("--smaller: no number of tokens brings"));
  EXPECT_THAT(input_error([&] { break_even(kLaw, optimal(), optimal().params, {}, "--smaller"); }),
              HasSubstr("are not fewer than the compute-optimal"));
  EXPECT_TRUE(std::isinf(least_params(kLaw, kLaw.E)));
  EXPECT_FALSE(tokens_to_loss(kLaw, 1e20, kLaw.E));
}

TEST(BreakEven, CheapestSizeIsTheLeastOfASearch) {
  for (const LifetimeCost& cost : {LifetimeCost{}, LifetimeCost{.train_mfu = 0.4, .serve_mfu = 0.05}}) {
    double former = optimal().params;
    for (const double served : {1e9, 1e12, 1e13, 1e15, 1e18}) {
      const LifetimeOptimum best = lifetime_optimum(kLaw, optimal(), served, cost);
      EXPECT_CLOSE(kLaw.loss(best.model.params, best.model.tokens), optimal_loss(), tolerance::kClosedForm);
      const double least = cost.train(best.model.params, best.model.tokens) + cost.serve(best.model.params, served);
      for (const double factor : {0.8, 0.95, 0.99, 1.01, 1.05, 1.25}) {
        const double params = best.model.params * factor;
        if (tokens_to_loss(kLaw, params, optimal_loss())) {
          EXPECT_LE(least, lifetime(cost, params, served)) << served << " " << factor;
        }
      }
      EXPECT_LT(best.model.params, former);  // the more is served, the smaller
      EXPECT_GT(best.model.params, least_params(kLaw, optimal_loss()));
      EXPECT_GE(best.saving, -tolerance::kClosedForm);
      former = best.model.params;
    }
  }
  const LifetimeOptimum none = lifetime_optimum(kLaw, optimal(), 1, {});
  EXPECT_CLOSE(none.model.params, optimal().params, tolerance::kInvertedLoss);
  const LifetimeOptimum endless = lifetime_optimum(kLaw, optimal(), 1e24, {});
  EXPECT_TRUE(std::isfinite(endless.model.flops));
  EXPECT_GT(endless.saving, 0.5);
}

TEST(BreakEven, Json) {
  const Json b = to_json(break_even(kLaw, optimal(), 0.5 * optimal().params, {}, ""));
  EXPECT_GT(b.at("smaller").at("tokens").get<double>(), b.at("optimal").at("tokens").get<double>());
  EXPECT_GT(b.at("served_tokens").get<double>(), 0);
  const Json s = to_json(lifetime_optimum(kLaw, optimal(), 1e13, {}));
  for (const char* key : {"flops", "params", "tokens", "tokens_per_param", "serve_flops", "saving"})
    EXPECT_TRUE(s.at(key).is_number()) << key;
}

}  // namespace
}  // namespace transept
