// Activations in double: ReLU; GELU and its tanh form, arXiv:1606.08415 section 2; SiLU, the same paper; ReLU squared,
// arXiv:2109.08668 section 4; the logistic function; gated forms, arXiv:2002.05202 equations 4 to 6, and the clamped
// one, arXiv:2508.10925 section 2.2. Slow and plain: the truth that kernels are tested against.
#pragma once

#include <span>
#include <vector>

#include "kernels/activation.h"

namespace transept::ref {

double activation(ActivationKind kind, double x);
double activation_slope(ActivationKind kind, double x);

// gate_up is dense [rows, 2 * width], gate first; the result [rows, width].
std::vector<double> gated(ActivationKind kind, std::span<const double> gate_up, size_t width);
// The gradient of gate_up for the gradient dy of the result.
std::vector<double> gated_backward(ActivationKind kind, std::span<const double> gate_up, std::span<const double> dy,
                                   size_t width);

}  // namespace transept::ref
