#include "kernels/norm_ref.h"

#include <cmath>

namespace transept::ref {

std::vector<double> rmsnorm(std::span<const double> x, std::span<const double> weight, double eps) {
  const size_t n = weight.size();
  std::vector<double> y(x.size());
  for (size_t at = 0; at < x.size(); at += n) {
    double squares = 0;
    for (size_t i = 0; i < n; ++i) squares += x[at + i] * x[at + i];
    const double rms = std::sqrt(squares / static_cast<double>(n) + eps);
    for (size_t i = 0; i < n; ++i) y[at + i] = x[at + i] / rms * weight[i];
  }
  return y;
}

// dy_i / dx_j = w_i (delta_ij / rms - x_i x_j / (n rms^3)).
NormGradient rmsnorm_backward(std::span<const double> dy, std::span<const double> x, std::span<const double> weight,
                              double eps) {
  const size_t n = weight.size();
  NormGradient out{std::vector<double>(x.size()), std::vector<double>(n), {}};
  for (size_t at = 0; at < x.size(); at += n) {
    double squares = 0;
    for (size_t i = 0; i < n; ++i) squares += x[at + i] * x[at + i];
    const double rms = std::sqrt(squares / static_cast<double>(n) + eps);
    double along = 0;
    for (size_t i = 0; i < n; ++i) along += dy[at + i] * weight[i] * x[at + i];
    for (size_t j = 0; j < n; ++j) {
      out.dx[at + j] = dy[at + j] * weight[j] / rms - x[at + j] * along / (static_cast<double>(n) * rms * rms * rms);
      out.dweight[j] += dy[at + j] * x[at + j] / rms;
    }
  }
  return out;
}

namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(std::span<const double> row, double eps) {
  Moments m;
  for (const double v : row) m.mean += v / static_cast<double>(row.size());
  double variance = 0;
  for (const double v : row) variance += (v - m.mean) * (v - m.mean) / static_cast<double>(row.size());
  m.deviation = std::sqrt(variance + eps);
  return m;
}

}  // namespace

std::vector<double> layernorm(std::span<const double> x, std::span<const double> weight, std::span<const double> bias,
                              double eps) {
  const size_t n = weight.size();
  std::vector<double> y(x.size());
  for (size_t at = 0; at < x.size(); at += n) {
    const Moments m = moments(x.subspan(at, n), eps);
    for (size_t i = 0; i < n; ++i) {
      y[at + i] = (x[at + i] - m.mean) / m.deviation * weight[i] + (bias.empty() ? 0 : bias[i]);
    }
  }
  return y;
}

// d mean / dx_j = 1 / n;  d deviation / dx_j = (x_j - mean) / (n deviation);
// dy_i / dx_j = w_i ((delta_ij - 1 / n) / deviation - (x_i - mean)(x_j - mean) / (n deviation^3)).
NormGradient layernorm_backward(std::span<const double> dy, std::span<const double> x, std::span<const double> weight,
                                double eps) {
  const size_t n = weight.size();
  const double count = static_cast<double>(n);
  NormGradient out{std::vector<double>(x.size()), std::vector<double>(n), std::vector<double>(n)};
  for (size_t at = 0; at < x.size(); at += n) {
    const Moments m = moments(x.subspan(at, n), eps);
    double total = 0, along = 0;
    for (size_t i = 0; i < n; ++i) {
      total += dy[at + i] * weight[i];
      along += dy[at + i] * weight[i] * (x[at + i] - m.mean);
    }
    for (size_t j = 0; j < n; ++j) {
      const double centered = x[at + j] - m.mean;
      out.dx[at + j] = (dy[at + j] * weight[j] - total / count) / m.deviation -
                       centered * along / (count * m.deviation * m.deviation * m.deviation);
      out.dweight[j] += dy[at + j] * centered / m.deviation;
      out.dbias[j] += dy[at + j];
    }
  }
  return out;
}

}  // namespace transept::ref
