#include "plan/scaling_laws.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace transept {
namespace {

constexpr double kPetaflopDay = 1e15 * 24 * 3600;  // Kaplan's unit of compute

ScalingLaw parametric(std::string name, std::string source, const ParametricLoss& constants) {
  ScalingLaw law;
  law.name = std::move(name);
  law.source = std::move(source);
  law.frontier = Frontier::of(constants);
  law.loss = constants;
  return law;
}

ScalingLaw power_law(std::string name, std::string source, Frontier frontier, std::string note) {
  ScalingLaw law;
  law.name = std::move(name);
  law.source = std::move(source);
  law.frontier = frontier;
  law.note = std::move(note);
  return law;
}

std::vector<ScalingLaw> make_published_laws() {
  const std::string hoffmann = "Hoffmann et al. 2022, arXiv:2203.15556, ";
  std::vector<ScalingLaw> laws;

  laws.push_back(power_law("rule-of-thumb", "20 tokens a parameter, as read off " + hoffmann + "table 3", {20, 1},
                           "a reading of approach 1, not a fit"));

  ScalingLaw first =
      power_law("chinchilla-1", hoffmann + "approach 1, tables 2 and 3", Frontier::through(67e9, 5.76e23, 0.50),
                "the paper gives exponents; they are laid through its own row of 67B parameters at "
                "5.76e23 FLOPs");
  first.params_exponent_range = {0.488, 0.502};
  first.tokens_exponent_range = {0.501, 0.512};
  laws.push_back(std::move(first));

  ScalingLaw second =
      power_law("chinchilla-2", hoffmann + "approach 2, tables 2 and A3", Frontier::through(67e9, 6.88e23, 0.49),
                "the paper gives exponents; they are laid through its own row of 67B parameters at "
                "6.88e23 FLOPs");
  second.params_exponent_range = {0.462, 0.534};
  second.tokens_exponent_range = {0.483, 0.529};
  laws.push_back(std::move(second));

  ScalingLaw body = parametric("chinchilla-3-body", hoffmann + "approach 3, appendix D.3, equation 10",
                               {.E = 1.69, .A = 406.4, .B = 410.7, .alpha = 0.34, .beta = 0.28});
  body.params_exponent_range = {0.454, 0.455};
  body.tokens_exponent_range = {0.542, 0.543};
  body.note =
      "rounded for print: at 5.76e23 FLOPs the rounding alone makes 1.6 times the tokens a parameter of "
      "chinchilla-3-tex";
  laws.push_back(std::move(body));

  ScalingLaw tex = parametric("chinchilla-3-tex", hoffmann + "approach 3, the digits in the paper's TeX source",
                              {.E = std::exp(0.5267228),
                               .A = std::exp(6.0073404),
                               .B = std::exp(6.0179186),
                               .alpha = 0.33917084,
                               .beta = 0.2849083});
  tex.params_exponent_range = {0.454, 0.455};
  tex.tokens_exponent_range = {0.542, 0.543};
  tex.note =
      "Besiroglu et al. show that these constants fit the paper's own runs badly and that the intervals are far "
      "too narrow";
  laws.push_back(std::move(tex));

  ScalingLaw besiroglu =
      parametric("besiroglu", "Besiroglu et al. 2024, arXiv:2404.10102, table 1: a refit of approach 3",
                 {.E = 1.8172, .A = 482.01, .B = 2085.43, .alpha = 0.3478, .beta = 0.3658});
  besiroglu.standard_error = {.E = 0.0257, .A = 124.5, .B = 1293.3, .alpha = 0.0154, .beta = 0.0206};
  besiroglu.exponent_error = 0.020;
  besiroglu.note =
      "240 runs read off the paper's figure 4, the 5 highest losses left out; errors by the notebook that "
      "accompanies it. No covariance is published, so they give no error of tokens a parameter";
  laws.push_back(std::move(besiroglu));

  const std::string llama = "Llama 3, arXiv:2407.21783, section 3.2.1";
  // Tokens = 0.29 * flops^0.53; any budget names a point of that line.
  const double budget = 1e21, tokens = 0.29 * std::pow(budget, 0.53);
  laws.push_back(power_law("llama3", llama + ": the two constants",
                           Frontier::through(budget / (kTrainFlops * tokens), budget, 1 - 0.53),
                           "as printed, rounded to two digits; they give 10.5T tokens at 3.8e25 FLOPs, where the paper "
                           "states 16.55T"));
  laws.push_back(power_law("llama3-405b", llama + ": the stated prediction",
                           Frontier::through(3.8e25 / (kTrainFlops * 16.55e12), 3.8e25, 1 - 0.53),
                           "the printed exponent laid through the stated 16.55T tokens at 3.8e25 FLOPs (the paper adds "
                           "402B parameters: 6 N D is 5 % more than the budget)"));

  laws.push_back(power_law("kaplan", "Kaplan et al. 2020, arXiv:2001.08361, appendix A, table 6",
                           Frontier::through(1.3e9, kPetaflopDay, 0.73),
                           "parameters without embeddings, at a learning-rate schedule that did not follow the number "
                           "of tokens: superseded, shown for comparison"));
  return laws;
}

Json to_json(const ExponentRange& range) { return {{"low", range.low}, {"high", range.high}}; }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? to_json(*value) : Json();
}

}  // namespace

double ParametricLoss::loss(double params, double tokens) const {
  return E + A * std::pow(params, -alpha) + B * std::pow(tokens, -beta);
}

Frontier Frontier::of(const ParametricLoss& law) {
  return {std::pow(law.beta * law.B / (law.alpha * law.A), 1 / law.beta), law.alpha / law.beta};
}

Frontier Frontier::through(double params, double flops, double a) {
  const double r = (1 - a) / a;
  return {flops / (kTrainFlops * params) / std::pow(params, r), r};
}

Allocation Frontier::at_flops(double flops) const {
  const double params = std::pow(flops / (kTrainFlops * K), a());
  return {flops, params, flops / (kTrainFlops * params)};
}

Allocation Frontier::at_params(double params) const {
  const double tokens = K * std::pow(params, r);
  return {kTrainFlops * params * tokens, params, tokens};
}

Allocation Frontier::at_tokens(double tokens) const {
  const double params = std::pow(tokens / K, 1 / r);
  return {kTrainFlops * params * tokens, params, tokens};
}

std::optional<Allocation> optimum_at_loss(const ParametricLoss& law, double loss) {
  if (!(loss > law.E)) return std::nullopt;
  // At the optimum B / D^beta is alpha / beta times A / N^alpha.
  const double of_params = (loss - law.E) * law.beta / (law.alpha + law.beta);
  return Frontier::of(law).at_params(std::pow(law.A / of_params, 1 / law.alpha));
}

const std::vector<ScalingLaw>& published_laws() {
  static const std::vector<ScalingLaw> laws = make_published_laws();
  return laws;
}

Json to_json(const ParametricLoss& constants) {
  return {
      {"E", constants.E}, {"A", constants.A}, {"B", constants.B}, {"alpha", constants.alpha}, {"beta", constants.beta}};
}

Json to_json(const ScalingLaw& law, const Allocation& optimum) {
  Json document{{"name", law.name},
                {"source", law.source},
                {"flops", optimum.flops},
                {"params", optimum.params},
                {"tokens", optimum.tokens},
                {"tokens_per_param", optimum.tokens_per_param()},
                {"loss", law.loss ? Json(law.loss->loss(optimum.params, optimum.tokens)) : Json()},
                {"params_exponent", law.frontier.a()},
                {"tokens_exponent", law.frontier.b()},
                {"params_exponent_error", law.exponent_error ? Json(*law.exponent_error) : Json()},
                {"params_exponent_range", or_null(law.params_exponent_range)},
                {"tokens_exponent_range", or_null(law.tokens_exponent_range)},
                {"constants", or_null(law.loss)},
                {"standard_error", or_null(law.standard_error)}};
  document["note"] = law.note;
  return document;
}

}  // namespace transept
