// AdamW over a model's parameters (kernels/adamw.h): two groups, told apart by shape: matrices decay, norms and biases
// do not. Clipping by the global norm comes first (arXiv:1211.5063).
#pragma once

#include <cstdint>

#include "nn/parameters.h"
#include "tensor/floats.h"

namespace transept {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;  // 0: no clipping
};

class AdamW {
 public:
  AdamW(Parameters& parameters, const AdamWOptions& options);

  // L2 norm of all gradients; not finite when any of them is not.
  double gradient_norm(ThreadPool& pool);
  // One update with gradients whose norm is `norm` (finite).
  void step(ThreadPool& pool, double lr, double norm);

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // First and second moments, laid out as the parameters are.
  std::span<float> first_moments() { return m_.span(); }
  std::span<float> second_moments() { return v_.span(); }

 private:
  Parameters& parameters_;
  AdamWOptions options_;
  Floats m_, v_;
  int64_t steps_ = 0;
};

}  // namespace transept
