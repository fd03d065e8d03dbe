// A parametric scaling law fitted to runs: approach 3 of Hoffmann et al. 2022 (arXiv:2203.15556, section 3.3 and
// appendix D.3), with the errors and the checks of Besiroglu et al. 2024 (arXiv:2404.10102).
//
// Minimized is the sum over runs of Huber_delta(LSE(a - alpha log N, b - beta log D, e) - log L), delta = 1e-3, with
// A = exp(a), B = exp(b), E = exp(e), by L-BFGS from the best starts of the paper's grid. The sum, not the mean: with
// the mean the optimizer stops early, which by Besiroglu et al. is what went wrong in the paper.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "plan/scaling_laws.h"
#include "plan/scaling_runs.h"

namespace transept {

// What a fit says in numbers: its constants, a = beta / (alpha + beta), and the optimal tokens a parameter at one
// budget.
inline constexpr std::array<std::string_view, 7> kFitFigures{
    "E", "A", "B", "alpha", "beta", "params_exponent", "tokens_per_param"};
using FitFigures = std::array<double, kFitFigures.size()>;

FitFigures fit_figures(const ParametricLoss& law, double flops);

struct FitOptions {
  uint64_t seed = 0;
  int resamples = 200;       // of the bootstrap; 0: no errors
  size_t leave_highest = 5;  // losses left out of a second fit, as Besiroglu et al. did
  double flops = 0;          // of tokens_per_param; 0: the largest budget of the runs
};

struct ScalingFit {
  ParametricLoss law;
  double objective = 0;  // the sum at the minimum
  double flops = 0;      // budget of tokens_per_param
  FitFigures figures{};
  std::vector<double> residuals;  // log of the loss less log of the predicted loss, by run

  // Over resamples of the runs with replacement: standard deviation, 5th and 95th percentile.
  struct Bootstrap {
    int resamples = 0;  // that could be fitted
    FitFigures error{}, low{}, high{};
  };
  std::optional<Bootstrap> bootstrap;

  struct WithoutHighest {
    size_t count = 0;
    FitFigures figures{};
  };
  std::optional<WithoutHighest> without_highest;  // none where too few runs would remain

  // Each figure's largest change, in either direction, when a single run is left out, and that run's index.
  struct LeaveOneOut {
    size_t tried = 0;  // runs left out in turn: all, or those of the largest residuals where there are many
    FitFigures change{};
    std::array<size_t, kFitFigures.size()> run{};
  };
  std::optional<LeaveOneOut> leave_one_out;  // none with the fewest runs that can be fitted

  std::vector<std::string> warnings;  // constants that the runs do not determine
};

inline constexpr size_t kMinRuns = 6;  // one more than there are constants

// Results do not depend on the number of threads. InputError naming `where`, with every reason why the runs cannot
// determine five constants.
ScalingFit fit_scaling_law(const std::vector<ScalingRun>& runs, const FitOptions& options, ThreadPool& pool,
                           const std::string& where);

// As a set beside the published ones, with the bootstrap's errors.
ScalingLaw law_of(const ScalingFit& fit, const std::string& source);

Json to_json(const ScalingFit& fit);

}  // namespace transept
