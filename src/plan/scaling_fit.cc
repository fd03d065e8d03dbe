#include "plan/scaling_fit.h"

#include <fmt/format.h>
#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/problem.h"
#include "base/rng.h"

namespace transept {
namespace {

constexpr double kDelta = 1e-3;
constexpr size_t kStarts = 24;           // of the grid that are followed to their minimum
constexpr size_t kScreened = 1000;       // runs by which the starts are ranked, evenly taken
constexpr size_t kInfluential = 500;     // runs left out in turn at most
constexpr int kRestarts = 10;            // L-BFGS forgets its curvature at a kink of the Huber loss and is begun again
constexpr int kEvaluations = 1000;       // a restart
constexpr double kImprovement = 1e-9;    // relative; less than that ends the restarts
constexpr double kMinRatioSpread = 0.1;  // of log(tokens / params) about its trend in log(params), standard deviation

// The unknowns. a and b belong to N and D divided by their geometric means over the runs, which all but removes the
// correlation of a with alpha and of b with beta.
enum Unknown : unsigned { kA, kB, kE, kAlpha, kBeta, kUnknowns };
using Point = std::array<double, kUnknowns>;

struct Bounds {
  Point low, high;
  Point clamped(Point x) const {
    for (size_t i = 0; i < kUnknowns; ++i) x[i] = std::clamp(x[i], low[i], high[i]);
    return x;
  }
};

class Objective {
 public:
  explicit Objective(const std::vector<ScalingRun>& runs) {
    for (const ScalingRun& r : runs) {
      log_params_.push_back(std::log(r.params));
      log_tokens_.push_back(std::log(r.tokens));
      log_loss_.push_back(std::log(r.loss));
    }
    const auto center = [](std::vector<double>& values) {
      const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
      for (double& v : values) v -= mean;
      return mean;
    };
    params_center_ = center(log_params_);
    tokens_center_ = center(log_tokens_);
    const auto [low, high] = std::minmax_element(log_loss_.begin(), log_loss_.end());
    // A term e^12 times smaller than the smallest loss is none; exponents beyond these have never been seen by far.
    constexpr double kNone = 12, kLeast = 0.01, kMost = 4;
    bounds_ = {{*low - kNone, *low - kNone, *low - kNone, kLeast, kLeast},
               {*high + kNone, *high + kNone, *high, kMost, kMost}};
  }

  size_t size() const { return log_loss_.size(); }
  const Bounds& bounds() const { return bounds_; }

  // Sum of weight * Huber(residual) / delta^2 over the runs first, first + step, ...; its gradient where one is wanted.
  double operator()(const double* x, std::span<const double> weights, double* gradient, size_t step = 1) const {
    double sum = 0;
    Point slope{};
    for (size_t i = 0; i < log_loss_.size(); i += step) {
      if (weights[i] == 0) continue;
      const std::array<double, 3> terms = terms_of(x, i);
      const double top = std::max({terms[0], terms[1], terms[2]});
      const std::array<double, 3> parts{std::exp(terms[0] - top), std::exp(terms[1] - top), std::exp(terms[2] - top)};
      const double total = parts[0] + parts[1] + parts[2];
      const double r = (top + std::log(total) - log_loss_[i]) / kDelta;
      const bool inside = std::abs(r) <= 1;
      sum += weights[i] * (inside ? 0.5 * r * r : std::abs(r) - 0.5);
      const double s = weights[i] * (inside ? r : std::copysign(1.0, r)) / (kDelta * total);
      slope[kA] += s * parts[0];
      slope[kB] += s * parts[1];
      slope[kE] += s * parts[2];
      slope[kAlpha] -= s * parts[0] * log_params_[i];
      slope[kBeta] -= s * parts[1] * log_tokens_[i];
    }
    if (gradient) std::copy(slope.begin(), slope.end(), gradient);
    return sum;
  }

  double predicted_log_loss(const Point& x, size_t i) const {
    const std::array<double, 3> terms = terms_of(x.data(), i);
    const double top = std::max({terms[0], terms[1], terms[2]});
    return top + std::log(std::exp(terms[0] - top) + std::exp(terms[1] - top) + std::exp(terms[2] - top));
  }
  double residual(const Point& x, size_t i) const { return log_loss_[i] - predicted_log_loss(x, i); }

  ParametricLoss law(const Point& x) const {
    return {.E = std::exp(x[kE]),
            .A = std::exp(x[kA] + x[kAlpha] * params_center_),
            .B = std::exp(x[kB] + x[kBeta] * tokens_center_),
            .alpha = x[kAlpha],
            .beta = x[kBeta]};
  }

  // A start of the paper's grid, given by the uncentred a and b.
  Point start(double a, double b, double e, double alpha, double beta) const {
    return bounds_.clamped({a - alpha * params_center_, b - beta * tokens_center_, e, alpha, beta});
  }

 private:
  std::array<double, 3> terms_of(const double* x, size_t i) const {
    return {x[kA] - x[kAlpha] * log_params_[i], x[kB] - x[kBeta] * log_tokens_[i], x[kE]};
  }

  std::vector<double> log_params_, log_tokens_, log_loss_;  // the former two centred
  double params_center_ = 0, tokens_center_ = 0;
  Bounds bounds_{};
};

struct Minimum {
  Point x{};
  double value = std::numeric_limits<double>::infinity();
};

// L-BFGS to the nearest minimum. Its line search fails where the Huber loss bends, so the best point seen counts, not
// the last.
Minimum descend(const Objective& objective, std::span<const double> weights, const Point& start) {
  struct Call {
    const Objective& objective;
    std::span<const double> weights;
    Minimum best;
  } call{objective, weights, {start, objective(start.data(), weights, nullptr)}};
  const auto evaluate = [](unsigned, const double* x, double* gradient, void* data) {
    Call& c = *static_cast<Call*>(data);
    const double value = c.objective(x, c.weights, gradient);
    if (value < c.best.value) {
      std::copy(x, x + kUnknowns, c.best.x.begin());
      c.best.value = value;
    }
    return value;
  };
  const std::unique_ptr<std::remove_pointer_t<nlopt_opt>, void (*)(nlopt_opt)> optimizer(
      nlopt_create(NLOPT_LD_LBFGS, kUnknowns), nlopt_destroy);
  if (!optimizer) throw std::bad_alloc();
  nlopt_set_min_objective(optimizer.get(), evaluate, &call);
  nlopt_set_lower_bounds(optimizer.get(), objective.bounds().low.data());
  nlopt_set_upper_bounds(optimizer.get(), objective.bounds().high.data());
  nlopt_set_ftol_rel(optimizer.get(), 1e-12);
  nlopt_set_maxeval(optimizer.get(), kEvaluations);
  for (int i = 0; i < kRestarts; ++i) {
    const double before = call.best.value;
    Point x = call.best.x;
    double value = 0;
    nlopt_optimize(optimizer.get(), x.data(), &value);
    if (!(before - call.best.value > kImprovement * before)) break;
  }
  return call.best;
}

// The grid of appendix D.3, best start first, on the runs by which starts are ranked.
std::vector<Point> ranked_starts(const Objective& objective, std::span<const double> weights, size_t count) {
  const size_t step = std::max<size_t>(1, objective.size() / kScreened);
  std::vector<std::pair<double, Point>> starts;
  for (double a = 0; a <= 25; a += 5) {
    for (double b = 0; b <= 25; b += 5) {
      for (double e = -1; e <= 1; e += 0.5) {
        for (double alpha = 0; alpha <= 2; alpha += 0.5) {
          for (double beta = 0; beta <= 2; beta += 0.5) {
            const Point x = objective.start(a, b, e, alpha, beta);
            starts.emplace_back(objective(x.data(), weights, nullptr, step), x);
          }
        }
      }
    }
  }
  std::sort(starts.begin(), starts.end());
  std::vector<Point> best;
  for (size_t i = 0; i < std::min(count, starts.size()); ++i) best.push_back(starts[i].second);
  return best;
}

void check_runs(const std::vector<ScalingRun>& runs, const std::string& where) {
  Problems problems;
  std::set<std::array<double, 3>> distinct;
  std::set<double> params, tokens, losses;
  for (const ScalingRun& r : runs) {
    distinct.insert({r.params, r.tokens, r.loss});
    params.insert(r.params);
    tokens.insert(r.tokens);
    losses.insert(r.loss);
  }
  if (distinct.size() < kMinRuns)
    problems.push_back({where, fmt::format("holds {} different runs", distinct.size()),
                        fmt::format("five constants need {} at least", kMinRuns)});
  constexpr size_t kSizes = 3;  // a power and a constant need so many
  const auto few = [&](std::string_view name, size_t count) {
    if (count < kSizes)
      problems.push_back({where, fmt::format("holds {} different value{} of {}", count, count == 1 ? "" : "s", name),
                          fmt::format("{} at least are needed to tell its exponent from a constant", kSizes)});
  };
  few("params", params.size());
  few("tokens", tokens.size());
  if (losses.size() < 2) problems.push_back({where, "every loss is the same", "nothing can be fitted to it"});
  throw_if_any(std::move(problems));

  // On one line log D = p + q log N the two terms of the law cannot be told apart.
  const double n = static_cast<double>(runs.size());
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const ScalingRun& r : runs) {
    x += std::log(r.params) / n;
    y += std::log(r.tokens) / n;
  }
  for (const ScalingRun& r : runs) {
    const double u = std::log(r.params) - x, v = std::log(r.tokens) - y;
    xx += u * u;
    xy += u * v;
    yy += v * v;
  }
  const double off = std::sqrt(std::max(0.0, yy - xy * xy / xx) / n);
  if (off < kMinRatioSpread)
    throw InputError(where, "tokens follow params from run to run, so that their effects cannot be told apart",
                     "add runs of one size with other numbers of tokens");
}

// Indices of the runs, largest key first; equal ones in the order of the runs.
template <class Key>
std::vector<size_t> largest_first(size_t count, const Key& key) {
  std::vector<std::pair<double, size_t>> keyed;
  keyed.reserve(count);
  for (size_t i = 0; i < count; ++i) keyed.emplace_back(-key(i), i);
  std::sort(keyed.begin(), keyed.end());
  std::vector<size_t> order;
  order.reserve(count);
  for (const auto& [k, i] : keyed) order.push_back(i);
  return order;
}

double percentile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], at - static_cast<double>(below));
}

// How often each run comes up in one resample.
std::vector<double> resample(size_t count, uint64_t seed, uint32_t index) {
  const CounterRng rng(seed, Stream::kSampling, index);
  std::vector<double> weights(count, 0);
  for (size_t i = 0; i < count; ++i) ++weights[rng.below(i, count)];
  return weights;
}

std::optional<ScalingFit::Bootstrap> bootstrap(const Objective& objective, const Point& best, const FitOptions& options,
                                               double flops, ThreadPool& pool) {
  const auto count = static_cast<size_t>(options.resamples);
  std::vector<std::optional<FitFigures>> fits(count);
  pool.run(options.resamples, [&](int64_t i, int) {
    const std::vector<double> weights = resample(objective.size(), options.seed, static_cast<uint32_t>(i));
    const auto zeros = static_cast<size_t>(std::count(weights.begin(), weights.end(), 0.0));
    if (weights.size() - zeros < kUnknowns) return;
    const FitFigures f = fit_figures(objective.law(descend(objective, weights, best).x), flops);
    if (std::all_of(f.begin(), f.end(), [](double v) { return std::isfinite(v); })) fits[static_cast<size_t>(i)] = f;
  });
  ScalingFit::Bootstrap result;
  for (const auto& f : fits) result.resamples += f.has_value();
  if (result.resamples < 2 || 2 * result.resamples < options.resamples) return std::nullopt;
  for (size_t k = 0; k < kFitFigures.size(); ++k) {
    std::vector<double> values;
    for (const auto& f : fits) {
      if (f) values.push_back((*f)[k]);
    }
    std::sort(values.begin(), values.end());
    const double n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (const double v : values) squares += (v - mean) * (v - mean);
    result.error[k] = std::sqrt(squares / (n - 1));
    result.low[k] = percentile(values, 0.05);
    result.high[k] = percentile(values, 0.95);
  }
  return result;
}

ScalingFit::LeaveOneOut leave_one_out(const Objective& objective, const Point& best, const ScalingFit& fit,
                                      ThreadPool& pool) {
  std::vector<size_t> order = largest_first(objective.size(), [&](size_t i) { return std::abs(fit.residuals[i]); });
  order.resize(std::min(order.size(), kInfluential));
  std::vector<FitFigures> fits(order.size());
  pool.run(static_cast<int64_t>(order.size()), [&](int64_t i, int) {
    std::vector<double> weights(objective.size(), 1);
    weights[order[static_cast<size_t>(i)]] = 0;
    fits[static_cast<size_t>(i)] = fit_figures(objective.law(descend(objective, weights, best).x), fit.flops);
  });
  ScalingFit::LeaveOneOut result;
  result.tried = order.size();
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t k = 0; k < kFitFigures.size(); ++k) {
      const double change = fits[i][k] - fit.figures[k];
      if (!(std::abs(change) > std::abs(result.change[k]))) continue;
      result.change[k] = change;
      result.run[k] = order[i];
    }
  }
  return result;
}

std::optional<ScalingFit::WithoutHighest> without_highest(const Objective& objective,
                                                          const std::vector<ScalingRun>& runs, size_t count,
                                                          double flops) {
  if (count == 0 || runs.size() < kMinRuns + count) return std::nullopt;
  const std::vector<size_t> order = largest_first(runs.size(), [&](size_t i) { return runs[i].loss; });
  std::vector<double> weights(runs.size(), 1);
  for (size_t i = 0; i < count; ++i) weights[order[i]] = 0;
  Minimum best;
  for (const Point& start : ranked_starts(objective, weights, kStarts)) {
    const Minimum found = descend(objective, weights, start);
    if (found.value < best.value) best = found;
  }
  return ScalingFit::WithoutHighest{count, fit_figures(objective.law(best.x), flops)};
}

std::vector<std::string> warnings_of(const Objective& objective, const Point& x, const std::vector<ScalingRun>& runs) {
  std::vector<std::string> warnings;
  // What changes no loss of the runs by more than delta is not seen in them.
  const double lowest = std::min_element(runs.begin(), runs.end(), [](const ScalingRun& a, const ScalingRun& b) {
                          return a.loss < b.loss;
                        })->loss;
  const double unseen = kDelta * lowest;
  const ParametricLoss law = objective.law(x);
  if (law.E < unseen) warnings.emplace_back("E ran to zero: the runs are too far from the lowest loss to tell it");
  const auto check = [&](std::string_view name, Unknown exponent, double factor, double ScalingRun::* size) {
    const auto [least, most] = std::minmax_element(
        runs.begin(), runs.end(), [&](const ScalingRun& a, const ScalingRun& b) { return a.*size < b.*size; });
    const double fall = factor * (std::pow((*least).*size, -x[exponent]) - std::pow((*most).*size, -x[exponent]));
    if (fall < unseen) warnings.push_back(fmt::format("the loss hardly falls with {} in these runs", name));
    constexpr double kNear = 1e-6;
    const double low = objective.bounds().low[exponent], high = objective.bounds().high[exponent];
    if (x[exponent] <= low + kNear || x[exponent] >= high - kNear)
      warnings.push_back(fmt::format("the exponent of {} ran to the end of its range, {:g} to {:g}", name, low, high));
  };
  check("params", kAlpha, law.A, &ScalingRun::params);
  check("tokens", kBeta, law.B, &ScalingRun::tokens);
  return warnings;
}

Json named(const FitFigures& values) {
  Json document = Json::object();
  for (size_t k = 0; k < kFitFigures.size(); ++k) document[std::string(kFitFigures[k])] = values[k];
  return document;
}

}  // namespace

FitFigures fit_figures(const ParametricLoss& law, double flops) {
  const Frontier frontier = Frontier::of(law);
  return {law.E, law.A, law.B, law.alpha, law.beta, frontier.a(), frontier.at_flops(flops).tokens_per_param()};
}

ScalingFit fit_scaling_law(const std::vector<ScalingRun>& runs, const FitOptions& options, ThreadPool& pool,
                           const std::string& where) {
  TRANSEPT_CHECK(options.resamples >= 0 && options.flops >= 0);
  check_runs(runs, where);
  const Objective objective(runs);
  const std::vector<double> all(runs.size(), 1);
  const std::vector<Point> starts = ranked_starts(objective, all, kStarts);
  std::vector<Minimum> minima(starts.size());
  pool.run(static_cast<int64_t>(starts.size()), [&](int64_t i, int) {
    minima[static_cast<size_t>(i)] = descend(objective, all, starts[static_cast<size_t>(i)]);
  });
  const Minimum best = *std::min_element(minima.begin(), minima.end(),
                                         [](const Minimum& x, const Minimum& y) { return x.value < y.value; });

  ScalingFit fit;
  fit.law = objective.law(best.x);
  fit.objective = best.value * kDelta * kDelta;
  fit.flops = options.flops;
  if (fit.flops == 0) {
    for (const ScalingRun& r : runs) fit.flops = std::max(fit.flops, r.flops());
  }
  fit.figures = fit_figures(fit.law, fit.flops);
  for (size_t i = 0; i < runs.size(); ++i) fit.residuals.push_back(objective.residual(best.x, i));
  fit.warnings = warnings_of(objective, best.x, runs);
  if (options.resamples > 0) {
    fit.bootstrap = bootstrap(objective, best.x, options, fit.flops, pool);
    if (!fit.bootstrap) fit.warnings.emplace_back("too few runs for bootstrap errors");
  }
  fit.without_highest = without_highest(objective, runs, options.leave_highest, fit.flops);
  if (runs.size() > kMinRuns) fit.leave_one_out = leave_one_out(objective, best.x, fit, pool);
  return fit;
}

ScalingLaw law_of(const ScalingFit& fit, const std::string& source) {
  ScalingLaw law;
  law.name = "fit";
  law.source = source;
  law.frontier = Frontier::of(fit.law);
  law.loss = fit.law;
  if (fit.bootstrap) {
    const FitFigures& e = fit.bootstrap->error;
    law.standard_error = {.E = e[0], .A = e[1], .B = e[2], .alpha = e[3], .beta = e[4]};
    law.exponent_error = e[5];
  }
  for (const std::string& warning : fit.warnings) law.note += (law.note.empty() ? "" : "; ") + warning;
  return law;
}

Json to_json(const ScalingFit& fit) {
  Json document{{"runs", fit.residuals.size()},  {"delta", kDelta},
                {"objective", fit.objective},    {"flops", fit.flops},
                {"figures", named(fit.figures)}, {"bootstrap", nullptr},
                {"without_highest", nullptr},    {"leave_one_out", nullptr}};
  if (const auto& b = fit.bootstrap)
    document["bootstrap"] = {{"resamples", b->resamples},
                             {"standard_error", named(b->error)},
                             {"low", named(b->low)},
                             {"high", named(b->high)}};
  if (const auto& w = fit.without_highest)
    document["without_highest"] = {{"count", w->count}, {"figures", named(w->figures)}};
  if (const auto& l = fit.leave_one_out) {
    Json run = Json::object();
    for (size_t k = 0; k < kFitFigures.size(); ++k) run[std::string(kFitFigures[k])] = l->run[k];
    document["leave_one_out"] = {{"tried", l->tried}, {"largest_change", named(l->change)}, {"run", run}};
  }
  document["residuals"] = fit.residuals;
  document["warnings"] = fit.warnings;
  return document;
}

}  // namespace transept
