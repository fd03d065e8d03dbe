// The formulas of the rules; papers and sections in rope_scaling.h. All in double.
#include "spec/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace transept {
namespace {

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// theta * s^(d / (d - 2)). With a single pair no base matters, for its exponent is 0.
double ntk_theta(const RopeQuery& query, double s) {
  return query.rotated > 2 ? query.theta * std::pow(s, ratio(query.rotated, query.rotated - 2)) : query.theta;
}

RopeAngles with_base(double theta, const RopeQuery& query) {
  return {.inv_freq = plain_inv_freq(theta, query.rotated), .amplitude = 1};
}

void check_list(const std::vector<double>& list, int64_t rotated, const std::string& path, Problems& problems) {
  if (static_cast<int64_t>(list.size()) == rotated / 2) return;
  problems.push_back({path,
                      "has " + std::to_string(list.size()) + " entries for " + std::to_string(rotated / 2) + " pairs",
                      "give one for each pair of the " + std::to_string(rotated) + " elements that turn"});
}

}  // namespace

std::vector<double> plain_inv_freq(double theta, int64_t rotated) {
  std::vector<double> inv_freq;
  for (int64_t i = 0; i < rotated / 2; ++i) inv_freq.push_back(std::pow(theta, -ratio(2 * i, rotated)));
  return inv_freq;
}

RopeAngles NoScaling::angles(const RopeQuery& query) const { return with_base(query.theta, query); }

RopeAngles LinearScaling::angles(const RopeQuery& query) const {
  RopeAngles angles = with_base(query.theta, query);
  for (double& f : angles.inv_freq) f /= factor;
  return angles;
}

RopeAngles NtkScaling::angles(const RopeQuery& query) const { return with_base(ntk_theta(query, factor), query); }

RopeAngles DynamicScaling::angles(const RopeQuery& query) const {
  const int64_t trained =
      original_max_position_embeddings > 0 ? original_max_position_embeddings : query.max_position_embeddings;
  const double s = factor * ratio(std::max(query.length, trained), trained) - (factor - 1);
  return with_base(ntk_theta(query, s), query);
}

RopeAngles YarnScaling::angles(const RopeQuery& query) const {
  RopeAngles angles = with_base(query.theta, query);
  const double d = static_cast<double>(query.rotated);
  // The pair, as a fraction, that turns `turns` times in the trained length.
  const auto pair_of = [&](double turns) {
    const double trained = static_cast<double>(original_max_position_embeddings);
    return d * std::log(trained / (turns * 2 * std::numbers::pi)) / (2 * std::log(query.theta));
  };
  double low = pair_of(beta_fast), high = pair_of(beta_slow);
  if (truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, d - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < angles.inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    angles.inv_freq[i] *= (1 - ramp) + ramp / factor;
  }
  const auto temperature = [&](double weight) { return factor > 1 ? 0.1 * weight * std::log(factor) + 1 : 1; };
  if (attention_factor > 0) {
    angles.amplitude = attention_factor;
  } else if (mscale > 0 && mscale_all_dim > 0) {
    angles.amplitude = temperature(mscale) / temperature(mscale_all_dim);
  } else {
    angles.amplitude = temperature(1);
  }
  angles.score_factor = std::pow(temperature(mscale_all_dim), 2);
  return angles;
}

void YarnScaling::check(const RopeQuery& query, const std::string& where, Problems& problems) const {
  if (query.theta <= 1)
    problems.push_back({where + ".theta",
                        "yarn divides pairs by how often they turn, which needs frequencies that fall",
                        "give a theta above 1"});
  if (beta_fast < beta_slow)
    problems.push_back({where + ".scaling.beta_fast", "is below beta_slow", "give at least beta_slow"});
}

RopeAngles Llama3Scaling::angles(const RopeQuery& query) const {
  RopeAngles angles = with_base(query.theta, query);
  for (double& f : angles.inv_freq) {
    const double turns = static_cast<double>(original_max_position_embeddings) * f / (2 * std::numbers::pi);
    const double keep = std::clamp((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0.0, 1.0);
    f *= keep + (1 - keep) / factor;
  }
  return angles;
}

void Llama3Scaling::check(const RopeQuery&, const std::string& where, Problems& problems) const {
  if (high_freq_factor <= low_freq_factor)
    problems.push_back(
        {where + ".scaling.high_freq_factor", "is not above low_freq_factor", "give more than low_freq_factor"});
}

RopeAngles LongRopeScaling::angles(const RopeQuery& query) const {
  RopeAngles angles = with_base(query.theta, query);
  const std::vector<double>& divisors = query.length > original_max_position_embeddings ? long_factor : short_factor;
  for (size_t i = 0; i < angles.inv_freq.size(); ++i) angles.inv_freq[i] /= divisors[i];
  const double s = factor > 0 ? factor : ratio(query.max_position_embeddings, original_max_position_embeddings);
  if (attention_factor > 0) {
    angles.amplitude = attention_factor;
  } else if (s > 1) {
    angles.amplitude = std::sqrt(1 + std::log(s) / std::log(static_cast<double>(original_max_position_embeddings)));
  }
  return angles;
}

void LongRopeScaling::check(const RopeQuery& query, const std::string& where, Problems& problems) const {
  check_list(short_factor, query.rotated, where + ".scaling.short_factor", problems);
  check_list(long_factor, query.rotated, where + ".scaling.long_factor", problems);
}

}  // namespace transept
