// Smaller models trained longer: what the same predicted loss costs with fewer parameters, and from how many served
// tokens on that is cheaper. Sardana et al. 2023, "Beyond Chinchilla-Optimal" (arXiv:2401.00448, section 3): the cost
// of a model's life is 6 N D to train and 2 N T to serve T tokens, prompts and answers together, at a loss held fixed.
//
// With R = L - E the reducible loss and u the share of it that is left to the data, A / M^alpha = R (1 - u) and
// B / D^beta = R u: u in (0, 1) runs through every model of loss L. The compute-optimal one has
// u = alpha / (alpha + beta), smaller ones have less. No model below (A / R)^(1 / alpha) parameters reaches L.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "plan/scaling_laws.h"

namespace transept {

// What a FLOP costs. Only ratios matter; all ones compare FLOPs.
struct LifetimeCost {
  double train_mfu = 1;    // utilization of the machines that train, (0, 1]
  double serve_mfu = 1;    // of those that serve
  double price_ratio = 1;  // price of a serving machine's hour over that of a training one, at equal peak FLOPs

  double train(double params, double tokens) const { return kTrainFlops * params * tokens / train_mfu; }
  double serve(double params, double tokens) const { return price_ratio * kServeFlops * params * tokens / serve_mfu; }
};

// Fewest parameters with which the law reaches the loss at all, infinite where loss <= E.
double least_params(const ParametricLoss& law, double loss);
// Tokens to that loss; nothing at or below least_params.
std::optional<double> tokens_to_loss(const ParametricLoss& law, double params, double loss);

struct BreakEven {
  Allocation optimal;                // the compute-optimal model
  double loss = 0;                   // that it predicts
  Allocation smaller;                // of equal predicted loss
  double extra_train_flops = 0;      // the smaller one's beyond the optimal one's
  double saved_flops_per_token = 0;  // served
  double served_tokens = 0;          // at which both have cost the same; the smaller one is cheaper from there on
};

// The smaller model of so many parameters. InputError naming `where`: not smaller than the optimum, or too small for
// its loss, with the least that is not.
BreakEven break_even(const ParametricLoss& law, const Allocation& optimal, double params, const LifetimeCost& cost,
                     const std::string& where);

struct LifetimeOptimum {
  Allocation model;  // cheapest in training and serving
  double serve_flops = 0;
  double saving = 0;  // of the compute-optimal model's cost for the same tokens served, as a fraction of it
};

// The cheapest model of the optimal one's predicted loss when it serves so many tokens.
LifetimeOptimum lifetime_optimum(const ParametricLoss& law, const Allocation& optimal, double served_tokens,
                                 const LifetimeCost& cost);

Json to_json(const BreakEven& result);
Json to_json(const LifetimeOptimum& result);

}  // namespace transept
