// Norms in double, as the papers write them: RMSNorm, arXiv:1910.07467 equation 4; LayerNorm, arXiv:1607.06450 equation
// 3, each with eps added under the root as every implementation does. The gradients are the products with the Jacobians
// of those equations. Slow and plain: the truth that kernels are tested against. Arrays are dense [rows, width] with
// width = weight.size().
#pragma once

#include <span>
#include <vector>

namespace transept::ref {

struct NormGradient {
  std::vector<double> dx, dweight, dbias;
};

std::vector<double> rmsnorm(std::span<const double> x, std::span<const double> weight, double eps);
NormGradient rmsnorm_backward(std::span<const double> dy, std::span<const double> x, std::span<const double> weight,
                              double eps);

std::vector<double> layernorm(std::span<const double> x, std::span<const double> weight, std::span<const double> bias,
                              double eps);
NormGradient layernorm_backward(std::span<const double> dy, std::span<const double> x, std::span<const double> weight,
                                double eps);

}  // namespace transept::ref
