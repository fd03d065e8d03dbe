// Linear layers: y = residual + dropout(x W^T + b). Bias, dropout and residual are applied to each tile of the product
// while it is in cache. Backward, with g the gradient after the dropout mask: dW += g^T x, db += sum of g, dx = g W,
// and the residual receives dy as it is.
#pragma once

#include <optional>

#include "kernels/elementwise.h"
#include "ops/tape.h"

namespace transept {

struct LinearEnd {
  Param bias;                     // absent: none
  DropoutMask dropout;            // p = 0: none
  const Var* residual = nullptr;  // added last
};

// weight [out, x.width]. Result [x.rows, out].
Var linear(const OpContext& context, const Var& x, const Param& weight, const LinearEnd& end = {});

// The pieces, for ops that hold a projection inside themselves (ops/ffn.cc).
// That the parts of the end fit a result [rows, width].
void check_end(const LinearEnd& end, int64_t rows, int64_t width);
// The epilogue of the end on tiles of y.
void apply_end(const LinearEnd& end, Rows tile, int64_t row, int64_t column);
// The gradient before the dropout: dy itself without dropout, else a masked copy.
Buffer gradient_before_dropout(const OpContext& context, const DropoutMask& dropout, const Buffer& dy, int64_t rows,
                               int64_t width);
// db += column sums of g.
void add_bias_gradient(const OpContext& context, const Param& bias, ConstRows g);

}  // namespace transept
