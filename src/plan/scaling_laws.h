// Scaling laws: how many parameters N and tokens D a budget of C FLOPs is best spent on, by every published set of
// constants, with C = 6 N D (Kaplan et al. 2020, arXiv:2001.08361, section 2.1).
//
// A parametric law predicts the loss, L(N, D) = E + A / N^alpha + B / D^beta (Hoffmann et al. 2022, arXiv:2203.15556,
// section 3.3, equation 2). Its minimum under C = 6 N D (equation 4) has alpha A / N^alpha = beta B / D^beta, so that
// D = K N^r with r = alpha / beta and K = (beta B / (alpha A))^(1 / beta), hence N ~ C^a and D ~ C^b with
// a = beta / (alpha + beta), b = alpha / (alpha + beta). Every other law is a line D = K N^r too: see Frontier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace transept {

inline constexpr double kTrainFlops = 6;  // a parameter and token: forward 2, backward 4
inline constexpr double kServeFlops = 2;  // a parameter and token: forward

struct ParametricLoss {
  double E = 0, A = 0, B = 0, alpha = 0, beta = 0;  // all positive; nats a token

  double loss(double params, double tokens) const;
};

struct Allocation {
  double flops = 0, params = 0, tokens = 0;

  double tokens_per_param() const { return tokens / params; }
};

// The compute-optimal line, tokens = K * params^r.
struct Frontier {
  double K = 0, r = 0;

  static Frontier of(const ParametricLoss& law);
  // params ~ flops^a through a known optimum.
  static Frontier through(double params, double flops, double a);

  double a() const { return 1 / (1 + r); }
  double b() const { return r / (1 + r); }
  Allocation at_flops(double flops) const;
  Allocation at_params(double params) const;  // the budget for which they are optimal
  Allocation at_tokens(double tokens) const;
};

// The optimum that predicts this loss, nothing where loss <= E: no budget reaches it.
std::optional<Allocation> optimum_at_loss(const ParametricLoss& law, double loss);

struct ExponentRange {
  double low = 0, high = 0;
};

struct ScalingLaw {
  std::string name;    // of the set, as `--set` takes it
  std::string source;  // paper and place
  Frontier frontier;
  std::optional<ParametricLoss> loss;                  // none: the source fits no loss
  std::optional<ParametricLoss> standard_error;        // of each constant, where published
  std::optional<double> exponent_error;                // standard error of a, where published
  std::optional<ExponentRange> params_exponent_range;  // of a, published: 10th and 90th percentile over resamples
  std::optional<ExponentRange> tokens_exponent_range;  // of b, likewise
  std::string note;                                    // what a reader of its figures must know
};

// Every published set, the rule of thumb of 20 tokens a parameter first.
const std::vector<ScalingLaw>& published_laws();

// The law's optimum and what the law says there: name, source, flops, params, tokens, tokens_per_param, loss (null
// without one), params_exponent, tokens_exponent with what is known of their errors, constants, standard_error, note.
Json to_json(const ScalingLaw& law, const Allocation& optimum);
Json to_json(const ParametricLoss& constants);

}  // namespace transept
