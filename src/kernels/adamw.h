// AdamW (arXiv:1711.05101, algorithm 2, with the decay scaled by the learning rate as PyTorch does), fused over a range
// of parameters.
#pragma once

#include <cstdint>

namespace transept {

struct AdamWStep {
  float lr = 0;
  float beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f;
  float weight_decay = 0;      // of this range
  float bias_correction1 = 1;  // 1 - beta1^t
  float bias_correction2 = 1;  // 1 - beta2^t
  float gradient_scale = 1;    // clipping factor
};

// g = gradient * gradient_scale;  p -= lr * weight_decay * p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2)
// g^2; p -= lr / bias_correction1 * m / (sqrt(v) / sqrt(bias_correction2) + eps), in this order.
void adamw_update(const AdamWStep& step, int64_t n, const float* gradient, float* m, float* v, float* p);

}  // namespace transept
