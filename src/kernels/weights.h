// Products with weights of either form (tensor/weight.h). 16-bit weights are widened to float32, which is exact, and
// sums are float32: the result is that of the same weights in float32 but for the order of sums. A few rows of x are
// multiplied as the weights stream by, since then memory is what a product waits for (the library's product of one row
// reads float weights at half the rate of memory); many rows by the library's product, on panels of widened weights
// that stay in the second-level cache.
#pragma once

#include <cstdint>

#include "kernels/gemm.h"
#include "tensor/rows.h"
#include "tensor/weight.h"

namespace transept {

// Row `row` of the weights, as floats.
void read_weight_row(const Weight& w, int64_t row, float* to);

// On the calling thread: Y[x.rows, n] = X W[first, first + n)^T.
void multiply_tile(ConstRows x, const Weight& w, int64_t first, int64_t n, Rows y);

// Y[rows, n] = X W^T, with W [n, X.width]: the forward product of a linear layer.
void multiply(ThreadPool& pool, ConstRows x, const Weight& w, int64_t n, Rows y, const TileEpilogue& epilogue = {});

}  // namespace transept
