// Softmax cross-entropy in double: -log p(target) with p_j = exp(z_j) / sum_k exp(z_k), and its gradient p -
// onehot(target) (Goodfellow, Bengio, Courville, "Deep Learning", section 6.2.2.3). Slow and plain: the truth that the
// kernel is tested against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept::ref {

// The end of a head, of one logit before it: softcap * tanh((scale * z + bias) / softcap) (arXiv:2408.00118 section 2),
// softcap 0: no tanh. The slope is that by scale * z + bias.
double finished_logit(double z, double scale, double bias, double softcap);
double finished_logit_slope(double z, double scale, double bias, double softcap);

// One row; target < 0: ignored.
double cross_entropy(std::span<const double> z, int32_t target);
std::vector<double> cross_entropy_backward(std::span<const double> z, int32_t target);

}  // namespace transept::ref
