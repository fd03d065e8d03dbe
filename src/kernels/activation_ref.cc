#include "kernels/activation_ref.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace transept::ref {
namespace {

// sqrt(2 / pi) (x + 0.044715 x^3), the argument of tanh.
double cubic(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

constexpr double kGain = 1.702, kLimit = 7;

// The factor beside the activated gate, and its slope.
double factor(ActivationKind kind, double up) {
  return kind == ActivationKind::kClampedSilu ? std::clamp(up, -kLimit, kLimit) + 1 : up;
}
double factor_slope(ActivationKind kind, double up) {
  return kind == ActivationKind::kClampedSilu && std::abs(up) > kLimit ? 0 : 1;
}

}  // namespace

double activation(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kGelu:
      return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case ActivationKind::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(cubic(x)));
    case ActivationKind::kSilu:
      return x * logistic(x);
    case ActivationKind::kReluSquared:
      return x > 0 ? x * x : 0;
    case ActivationKind::kSigmoid:
      return logistic(x);
    case ActivationKind::kClampedSilu:
      return std::min(x, kLimit) * logistic(kGain * std::min(x, kLimit));
  }
  TRANSEPT_CHECK(false);
}

double activation_slope(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kRelu:
      return x > 0 ? 1 : 0;
    case ActivationKind::kGelu: {
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
    }
    case ActivationKind::kGeluTanh: {
      const double t = std::tanh(cubic(x));
      const double inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
    }
    case ActivationKind::kSilu: {
      const double s = logistic(x);
      return s + x * s * (1 - s);
    }
    case ActivationKind::kReluSquared:
      return x > 0 ? 2 * x : 0;
    case ActivationKind::kSigmoid:
      return logistic(x) * logistic(-x);
    case ActivationKind::kClampedSilu: {
      const double s = logistic(kGain * x);
      return x > kLimit ? 0 : s + kGain * x * s * (1 - s);
    }
  }
  TRANSEPT_CHECK(false);
}

std::vector<double> gated(ActivationKind kind, std::span<const double> gate_up, size_t width) {
  std::vector<double> y(gate_up.size() / 2);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t gate = i / width * 2 * width + i % width;
    y[i] = activation(kind, gate_up[gate]) * factor(kind, gate_up[gate + width]);
  }
  return y;
}

std::vector<double> gated_backward(ActivationKind kind, std::span<const double> gate_up, std::span<const double> dy,
                                   size_t width) {
  std::vector<double> gradient(gate_up.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const size_t gate = i / width * 2 * width + i % width;
    const double up = gate_up[gate + width];
    gradient[gate] = dy[i] * factor(kind, up) * activation_slope(kind, gate_up[gate]);
    gradient[gate + width] = dy[i] * activation(kind, gate_up[gate]) * factor_slope(kind, up);
  }
  return gradient;
}

}  // namespace transept::ref
