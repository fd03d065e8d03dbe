#include "kernels/elementwise_ref.h"

#include <cmath>
#include <limits>

#include "base/rng.h"

namespace transept::ref {

double dropout_factor(const DropoutMask& mask, int64_t row, int64_t column) {
  const uint64_t counter = mask.first + static_cast<uint64_t>(row * mask.full_width + column);
  const uint32_t word = philox(mask.key, counter / 4, mask.stream)[counter % 4];
  const double p = static_cast<double>(mask.p);
  return static_cast<double>(word) < p * 4294967296.0 ? 0 : 1 / (1 - p);
}

double value_of(HalfFormat format, uint16_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1, top = (1 << format.exponent_bits) - 1;
  const int exponent = (bits >> format.mantissa_bits) & top, mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const double sign = bits >> 15 != 0 ? -1 : 1, fraction = std::ldexp(mantissa, -format.mantissa_bits);
  if (exponent == top)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

// Non-negative patterns are in the order of their values, with infinity standing where the next power of two would be.
uint16_t nearest(HalfFormat format, double x) {
  const int top = (1 << format.exponent_bits) - 1, bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint16_t infinity = static_cast<uint16_t>(top << format.mantissa_bits);
  const auto value = [&](int pattern) {
    return pattern == infinity ? std::ldexp(1.0, top - bias) : value_of(format, static_cast<uint16_t>(pattern));
  };
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::abs(x);
  if (magnitude >= value(infinity)) return sign | infinity;
  int below = 0, above = infinity;  // value(below) <= magnitude < value(above)
  while (above - below > 1) {
    const int middle = (below + above) / 2;
    (value(middle) <= magnitude ? below : above) = middle;
  }
  const double down = magnitude - value(below), up = value(above) - magnitude;
  const int chosen = down < up || (down == up && below % 2 == 0) ? below : above;
  return static_cast<uint16_t>(sign | chosen);
}

}  // namespace transept::ref
