#include "kernels/rope_ref.h"

#include <cmath>
#include <complex>

namespace transept::ref {
namespace {

// pair(first index, second index, angle) for every pair of the array.
template <class F>
void for_pairs(const RopeShape& s, size_t size, std::span<const double> angles, const F& pair) {
  for (int64_t r = 0; r < static_cast<int64_t>(size) / s.width; ++r) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.rotated / 2; ++i) {
        const int64_t head = r * s.width + h * s.head_dim;
        const bool halves = s.pairing == RopePairing::kHalfSplit;
        pair(static_cast<size_t>(head + (halves ? i : 2 * i)),
             static_cast<size_t>(head + (halves ? i + s.rotated / 2 : 2 * i + 1)),
             angles[static_cast<size_t>(r * (s.rotated / 2) + i)]);
      }
    }
  }
}

}  // namespace

std::vector<double> rope(const RopeShape& shape, std::span<const double> x, std::span<const double> angles) {
  std::vector<double> y(x.begin(), x.end());
  for_pairs(shape, x.size(), angles, [&](size_t first, size_t second, double angle) {
    const std::complex<double> turned = std::complex<double>(x[first], x[second]) * std::polar(shape.amplitude, angle);
    y[first] = turned.real();
    y[second] = turned.imag();
  });
  return y;
}

// The transposed Jacobian of amplitude * (a cos - b sin, a sin + b cos).
std::vector<double> rope_backward(const RopeShape& shape, std::span<const double> dy, std::span<const double> angles) {
  std::vector<double> dx(dy.begin(), dy.end());
  for_pairs(shape, dy.size(), angles, [&](size_t first, size_t second, double angle) {
    dx[first] = shape.amplitude * (dy[first] * std::cos(angle) + dy[second] * std::sin(angle));
    dx[second] = shape.amplitude * (-dy[first] * std::sin(angle) + dy[second] * std::cos(angle));
  });
  return dx;
}

}  // namespace transept::ref
