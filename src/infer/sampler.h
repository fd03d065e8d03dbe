// Choosing the next token from logits: greedy, or temperature, top-k, top-p (arXiv:1904.09751) and min-p
// (arXiv:2407.01082), applied in this order, then a draw from what is left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/problem.h"
#include "base/rng.h"

namespace transept {

struct SamplingOptions {
  double temperature = 1.0;  // 0: greedy, ties to the lowest id
  int64_t top_k = 0;         // 0: all
  double top_p = 1.0;        // keeps the fewest most likely tokens that reach this probability; at least one
  double min_p = 0.0;        // drops tokens less likely than min_p times the most likely one
  uint64_t seed = 0;
  Problems check() const;  // what is out of range
};

class TokenSampler {
 public:
  explicit TokenSampler(const SamplingOptions& options) : options_(options), rng_(options.seed, Stream::kSampling) {}
  // The next draw; EnvironmentError when a logit is not a number.
  int32_t next(std::span<const float> logits);

 private:
  SamplingOptions options_;
  CounterRng rng_;
  uint64_t draws_ = 0;
  std::vector<int32_t> order_;
  std::vector<double> probability_;
};

}  // namespace transept
