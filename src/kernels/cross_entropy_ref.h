// Softmax cross-entropy in double: -log p(target) with p_j = exp(z_j) / sum_k exp(z_k), and its gradient p -
// onehot(target) (Goodfellow, Bengio, Courville, "Deep Learning", section 6.2.2.3). Slow and plain: the truth that the
// kernel is tested against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept::ref {

// One row; target < 0: ignored.
double cross_entropy(std::span<const double> z, int32_t target);
std::vector<double> cross_entropy_backward(std::span<const double> z, int32_t target);

}  // namespace transept::ref
