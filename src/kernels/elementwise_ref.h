// Definitions behind the elementwise kernels, one element at a time: the dropout mask, and 16-bit formats by their
// fields (IEEE 754-2019 section 3.4: binary16; bfloat16 is the upper half of binary32). Slow and plain: the truth that
// kernels are tested against.
#pragma once

#include <cstdint>

#include "kernels/elementwise.h"

namespace transept::ref {

// What element (row, column) of the whole matrix is multiplied by: 0 or 1 / (1 - p). The gradient is multiplied by the
// same.
double dropout_factor(const DropoutMask& mask, int64_t row, int64_t column);

struct HalfFormat {
  int exponent_bits, mantissa_bits;
};
inline constexpr HalfFormat kF16{5, 10}, kBF16{8, 7};

double value_of(HalfFormat format, uint16_t bits);  // exact; a quiet NaN for every NaN
uint16_t nearest(HalfFormat format, double x);      // round to nearest, ties to even; x is not NaN

}  // namespace transept::ref
