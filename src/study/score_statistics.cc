#include "study/score_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/problem.h"
#include "base/rng.h"

namespace transept {
namespace {

enum Operand : uint32_t { kQueries, kKeys, kUpstream };

std::vector<double> drawn(int64_t count, uint64_t seed, Operand operand, int64_t first = 0) {
  const CounterRng rng(seed, Stream::kData, operand);
  std::vector<double> x;
  for (int64_t i = first; i < first + count; ++i) x.push_back(rng.normal(static_cast<uint64_t>(i)));
  return x;
}

double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (const double e : x) squares += e * e;
  return std::sqrt(squares);
}

NormStatistics statistics_of(std::vector<double> norms) {
  double sum = 0;
  for (const double n : norms) sum += n;
  std::ranges::sort(norms);
  const size_t half = norms.size() / 2;
  const double median = norms.size() % 2 == 1 ? norms[half] : (norms[half - 1] + norms[half]) / 2;
  return {sum / static_cast<double>(norms.size()), median};
}

std::vector<double> softmax(const std::vector<double>& scores) {
  const double largest = *std::ranges::max_element(scores);
  std::vector<double> p;
  double sum = 0;
  for (const double s : scores) sum += p.emplace_back(std::exp(s - largest));
  for (double& x : p) x /= sum;
  return p;
}

// p = softmax(s):  ds_j = p_j (dp_j - sum_l p_l dp_l).
std::vector<double> softmax_gradient(const std::vector<double>& p, const std::vector<double>& dp) {
  double mean = 0;
  for (size_t j = 0; j < p.size(); ++j) mean += p[j] * dp[j];
  std::vector<double> ds;
  for (size_t j = 0; j < p.size(); ++j) ds.push_back(p[j] * (dp[j] - mean));
  return ds;
}

double entropy_of(const std::vector<double>& p) {
  double entropy = 0;
  for (const double x : p) entropy -= x > 0 ? x * std::log(x) : 0;
  return entropy;
}

void check_sizes(int64_t head_dim, int64_t queries, int64_t keys) {
  Problems problems;
  for (const auto& [where, value] :
       {std::pair{"head_dim", head_dim}, std::pair{"queries", queries}, std::pair{"keys", keys}}) {
    if (value < 1) problems.push_back({where, fmt::format("is {}", value), "give 1 or more"});
  }
  throw_if_any(std::move(problems));
}

}  // namespace

ScoreStatistics score_statistics(int64_t head_dim, bool scaled, int64_t queries, int64_t keys, uint64_t seed) {
  check_sizes(head_dim, queries, keys);
  const size_t d = static_cast<size_t>(head_dim), n = static_cast<size_t>(keys);
  const double scale = scaled ? 1 / std::sqrt(static_cast<double>(head_dim)) : 1;
  const std::vector<double> k = drawn(keys * head_dim, seed, kKeys);
  ScoreStatistics sum;
  double score_squares = 0;
  std::vector<double> score_norms, query_norms, key_norms;
  for (int64_t i = 0; i < queries; ++i) {
    const std::vector<double> q = drawn(head_dim, seed, kQueries, i * head_dim);
    std::vector<double> scores(n);
    for (size_t j = 0; j < n; ++j) {
      for (size_t e = 0; e < d; ++e) scores[j] += scale * q[e] * k[j * d + e];
      score_squares += scores[j] * scores[j];
    }
    const std::vector<double> p = softmax(scores);
    const double largest = *std::ranges::max_element(p);
    sum.entropy += entropy_of(p);
    sum.largest_probability += largest;
    sum.saturated_share += largest > kSaturated ? 1 : 0;

    // s_j = scale q . k_j:  dq = scale sum_j ds_j k_j, dk_j = scale ds_j q, and |dk| = scale |ds| |q|.
    const std::vector<double> ds = softmax_gradient(p, drawn(keys, seed, kUpstream, i * keys));
    std::vector<double> dq(d);
    for (size_t j = 0; j < n; ++j) {
      for (size_t e = 0; e < d; ++e) dq[e] += scale * ds[j] * k[j * d + e];
    }
    score_norms.push_back(norm_of(ds));
    query_norms.push_back(norm_of(dq));
    key_norms.push_back(scale * score_norms.back() * norm_of(q));
  }
  const double count = static_cast<double>(queries), entropy = sum.entropy / count;
  return {.score_deviation = std::sqrt(score_squares / (count * static_cast<double>(keys))),
          .entropy = entropy,
          .entropy_share = keys > 1 ? entropy / std::log(static_cast<double>(keys)) : 1,
          .largest_probability = sum.largest_probability / count,
          .saturated_share = sum.saturated_share / count,
          .score_gradient = statistics_of(std::move(score_norms)),
          .query_gradient = statistics_of(std::move(query_norms)),
          .key_gradient = statistics_of(std::move(key_norms))};
}

}  // namespace transept
