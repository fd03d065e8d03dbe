#include "infer/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace transept {

Problems SamplingOptions::check() const {
  Problems problems;
  const auto require = [&](bool ok, const char* where, double got, const char* allowed) {
    if (!ok) problems.push_back({where, std::to_string(got) + " is out of range", allowed});
  };
  require(std::isfinite(temperature) && temperature >= 0, "--temperature", temperature,
          "allowed is 0 (greedy) or more");
  require(top_k >= 0, "--top-k", static_cast<double>(top_k), "allowed is 0 (all) or more");
  require(top_p > 0 && top_p <= 1, "--top-p", top_p, "allowed is above 0, up to 1");
  require(min_p >= 0 && min_p < 1, "--min-p", min_p, "allowed is 0 or more, below 1");
  return problems;
}

int32_t TokenSampler::next(std::span<const float> logits) {
  for (const float z : logits) {
    if (std::isnan(z))
      throw EnvironmentError("sampling", "the model gives logits that are not numbers",
                             "its weights are damaged or have diverged");
  }
  const uint64_t draw = draws_++;
  if (options_.temperature == 0) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) -
                                logits.begin());  // the first of equals
  }
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  size_t kept = logits.size();
  if (options_.top_k > 0) kept = std::min(kept, static_cast<size_t>(options_.top_k));
  if (kept < logits.size()) {
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept), order_.end(), likelier);
  } else {
    std::sort(order_.begin(), order_.end(), likelier);
  }
  const double top = static_cast<double>(logits[static_cast<size_t>(order_[0])]);
  if (std::isinf(top)) return order_[0];
  probability_.resize(kept);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) {
    probability_[i] =
        std::exp((static_cast<double>(logits[static_cast<size_t>(order_[i])]) - top) / options_.temperature);
    total += probability_[i];
  }
  if (options_.top_p < 1) {
    double reached = 0;
    size_t n = 0;
    while (n < kept && reached < options_.top_p * total) reached += probability_[n++];
    kept = std::max<size_t>(1, n);
  }
  if (options_.min_p > 0) {
    while (kept > 1 && probability_[kept - 1] < options_.min_p * probability_[0]) --kept;
  }
  total = std::accumulate(probability_.begin(), probability_.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  double left = rng_.uniform(draw) * total;
  for (size_t i = 0; i + 1 < kept; ++i) {
    left -= probability_[i];
    if (left < 0) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace transept
