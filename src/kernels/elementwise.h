// Elementwise work and column sums over rows; one call runs on one thread.
#pragma once

#include <cstdint>

#include "tensor/rows.h"

namespace transept {

void add_rows(ConstRows x, Rows y);          // y += x
void add_bias(const float* bias, Rows y);    // y[r, :] += bias
void scale_rows(float factor, Rows y);       // y *= factor
void copy_rows(ConstRows x, Rows y);         // y = x
void sum_columns(ConstRows x, float* sums);  // sums[c] += sum_r x[r, c], rows in order

// y is held between -bound and bound; a NaN stays. inside[r * y.width + c], unless null, says whether y[r, c] was
// between them. In the backward pass mask_rows zeroes the gradient of what was not.
void clamp_rows(float bound, Rows y, uint8_t* inside);
void mask_rows(const uint8_t* inside, Rows y);

// Inverted dropout: y[r, c] is zeroed with probability p and otherwise divided by 1 - p. Whether element (r, c) stays
// is a pure function of key and its counter first + (r * full_width + column + c): Philox4x32-10 (base/rng.h) word
// counter & 3 at counter >> 2, high word `stream`, compared with p * 2^32. The backward pass calls it again on the
// gradient. `full_width` and `column` place a tile in its whole matrix.
struct DropoutMask {
  uint64_t key = 0;
  uint64_t stream = 0;
  uint64_t first = 0;
  int64_t full_width = 0;
  float p = 0;
};
void dropout_rows(const DropoutMask& mask, int64_t row, int64_t column, Rows y);

double sum_of_squares(const float* x, int64_t n);  // double accumulation
bool all_finite(const float* x, int64_t n);

// float <-> 16-bit storage, round to nearest even.
void f32_from_bf16(const uint16_t* x, int64_t n, float* y);
void f32_from_f16(const uint16_t* x, int64_t n, float* y);
void bf16_from_f32(const float* x, int64_t n, uint16_t* y);
void f16_from_f32(const float* x, int64_t n, uint16_t* y);

}  // namespace transept
