// Routers in double, as the papers write them (named in router.h): whole sorts, whole Jacobians, sums over rows in
// their order. Slow and plain: the truth that kernels are tested against. Logits are dense [rows, experts].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/router.h"
#include "tensor/batch_layout.h"

namespace transept::ref {

struct Choices {
  std::vector<int64_t> expert;  // [rows, slots]; -1: none
  std::vector<double> gate;     // [rows, slots]; 0 where nothing is computed
  std::vector<bool> computed;   // [rows, slots]
};

// Of rows outside of `layout`, nothing is chosen.
Choices route(const RouterShape& shape, std::span<const double> logits, const BatchLayout& layout);

// The gradient of logits for that of the gates [rows, slots].
std::vector<double> gate_backward(const RouterShape& shape, std::span<const double> logits, const Choices& choices,
                                  std::span<const double> d_gate);

// P of every row [rows, experts]: the softmax, or the sigmoids divided by their sum (DeepSeek-V3 equation 19).
std::vector<double> probabilities(const RouterShape& shape, std::span<const double> logits);

// experts * sum_i f_i P_i of the batch, or its mean over sequences, with the gradient of logits (f is constant).
struct Loss {
  double value = 0;
  std::vector<double> d_logits;
};
Loss balance_loss(const RouterShape& shape, std::span<const double> logits, const Choices& choices,
                  const BatchLayout& layout, bool per_sequence);
// mean(log(sum exp(logits))^2) over the rows of the layout (ST-MoE equation 5).
Loss z_loss(const RouterShape& shape, std::span<const double> logits, const BatchLayout& layout);

}  // namespace transept::ref
