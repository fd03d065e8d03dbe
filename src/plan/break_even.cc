#include "plan/break_even.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "base/quantity.h"

namespace transept {

double least_params(const ParametricLoss& law, double loss) {
  if (!(loss > law.E)) return std::numeric_limits<double>::infinity();
  return std::pow(law.A / (loss - law.E), 1 / law.alpha);
}

std::optional<double> tokens_to_loss(const ParametricLoss& law, double params, double loss) {
  const double of_data = loss - law.E - law.A * std::pow(params, -law.alpha);
  if (!(of_data > 0)) return std::nullopt;
  return std::pow(law.B / of_data, 1 / law.beta);
}

BreakEven break_even(const ParametricLoss& law, const Allocation& optimal, double params, const LifetimeCost& cost,
                     const std::string& where) {
  if (!(params < optimal.params))
    throw InputError(where,
                     fmt::format("{} parameters are not fewer than the compute-optimal {}", quantity_text(params),
                                 quantity_text(optimal.params)),
                     "give fewer");
  BreakEven result;
  result.optimal = optimal;
  result.loss = law.loss(optimal.params, optimal.tokens);
  const std::optional<double> tokens = tokens_to_loss(law, params, result.loss);
  if (!tokens)
    throw InputError(
        where,
        fmt::format("no number of tokens brings {} parameters to a loss of {:.4f}", quantity_text(params), result.loss),
        fmt::format("give more than {}", quantity_text(least_params(law, result.loss))));
  result.smaller = {kTrainFlops * params * *tokens, params, *tokens};
  result.extra_train_flops = result.smaller.flops - optimal.flops;
  result.saved_flops_per_token = kServeFlops * (optimal.params - params);
  result.served_tokens = (cost.train(params, *tokens) - cost.train(optimal.params, optimal.tokens)) /
                         cost.serve(optimal.params - params, 1);
  return result;
}

LifetimeOptimum lifetime_optimum(const ParametricLoss& law, const Allocation& optimal, double served_tokens,
                                 const LifetimeCost& cost) {
  const double loss = law.loss(optimal.params, optimal.tokens);
  const double reducible = loss - law.E;
  const auto params_of = [&](double u) { return std::pow(law.A / (reducible * (1 - u)), 1 / law.alpha); };
  const auto tokens_of = [&](double u) { return std::pow(law.B / (reducible * u), 1 / law.beta); };
  // The cost's derivative by params, along the models of this loss:
  //   train(1, D) (1 - alpha (1 - u) / (beta u)) + serve(1, T),
  // which rises with u and is positive at the compute-optimal u, where its first term is zero. Bisection of log(u).
  const auto slope = [&](double u) {
    return cost.train(1, tokens_of(u)) * (1 - law.alpha * (1 - u) / (law.beta * u)) + cost.serve(1, served_tokens);
  };
  double low = std::log(std::numeric_limits<double>::epsilon()), high = std::log(law.alpha / (law.alpha + law.beta));
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (slope(std::exp(middle)) < 0 ? low : high) = middle;
  }
  const double u = std::exp(high), params = params_of(u), tokens = tokens_of(u);
  LifetimeOptimum result;
  result.model = {kTrainFlops * params * tokens, params, tokens};
  result.serve_flops = kServeFlops * params * served_tokens;
  const double before = cost.train(optimal.params, optimal.tokens) + cost.serve(optimal.params, served_tokens);
  result.saving = 1 - (cost.train(params, tokens) + cost.serve(params, served_tokens)) / before;
  return result;
}

namespace {
Json to_json(const Allocation& allocation) {
  return {{"flops", allocation.flops},
          {"params", allocation.params},
          {"tokens", allocation.tokens},
          {"tokens_per_param", allocation.tokens_per_param()}};
}
}  // namespace

Json to_json(const BreakEven& result) {
  return {{"loss", result.loss},
          {"optimal", to_json(result.optimal)},
          {"smaller", to_json(result.smaller)},
          {"extra_train_flops", result.extra_train_flops},
          {"saved_flops_per_token", result.saved_flops_per_token},
          {"served_tokens", result.served_tokens}};
}

Json to_json(const LifetimeOptimum& result) {
  Json document = to_json(result.model);
  document["serve_flops"] = result.serve_flops;
  document["saving"] = result.saving;
  return document;
}

}  // namespace transept
