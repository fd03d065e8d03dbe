#include "ops/linear.h"

#include "base/check.h"
#include "kernels/gemm.h"
#include "kernels/weights.h"
#include "ops/parallel.h"

namespace transept {

void check_end(const LinearEnd& end, int64_t rows, int64_t width) {
  TRANSEPT_CHECK(!end.bias || end.bias.out == width);
  TRANSEPT_CHECK(end.dropout.p <= 0 || end.dropout.full_width == width);
  TRANSEPT_CHECK(!end.residual || (end.residual->rows == rows && end.residual->width == width));
}

void apply_end(const LinearEnd& end, Rows tile, int64_t row, int64_t column) {
  if (end.bias) add_bias(end.bias.value + column, tile);
  if (end.dropout.p > 0) dropout_rows(end.dropout, row, column, tile);
  if (end.residual) {
    const int64_t width = end.residual->width;
    add_rows({end.residual->value.data() + row * width + column, tile.rows, tile.width, width}, tile);
  }
}

Buffer gradient_before_dropout(const OpContext& context, const DropoutMask& dropout, const Buffer& dy, int64_t rows,
                               int64_t width) {
  if (dropout.p <= 0) return dy;
  const Buffer g(context.arena, rows * width);
  const Rows to{g.data(), rows, width, width};
  for_rows(context.pool, rows, width, [&](int64_t first, int64_t count) {
    copy_rows(ConstRows{dy.data(), rows, width, width}.slice(first, count), to.slice(first, count));
    dropout_rows(dropout, first, 0, to.slice(first, count));
  });
  return g;
}

void add_bias_gradient(const OpContext& context, const Param& bias, ConstRows g) {
  if (!bias || !bias.gradient) return;
  for_columns(context.pool, g.width, [&](int64_t column, int64_t columns) {
    sum_columns({g.data + column, g.rows, columns, g.stride}, bias.gradient + column);
  });
}

Var linear(const OpContext& context, const Var& x, const Param& weight, const LinearEnd& end) {
  TRANSEPT_CHECK(weight.in == x.width && (weight.value || !context.tape));
  check_end(end, x.rows, weight.out);
  const Var y = context.make(x.rows, weight.out);
  const bool has_end = end.bias || end.dropout.p > 0 || end.residual;
  multiply(context.pool, x.view(), weight.weight(), weight.out, y.view(),
           has_end ? TileEpilogue([&](Rows tile, int64_t row, int64_t column) { apply_end(end, tile, row, column); })
                   : TileEpilogue());
  if (context.tape) {
    context.tape->record([context, x, weight, bias = end.bias, dropout = end.dropout, slot = y.gradient,
                          residual = end.residual ? end.residual->gradient : nullptr] {
      if (!slot->buffer) return;
      const int64_t out = weight.out;
      {
        const Buffer held = gradient_before_dropout(context, dropout, slot->buffer, x.rows, out);
        const ConstRows g{held.data(), x.rows, out, out};
        add_bias_gradient(context, bias, g);
        if (weight.gradient) gemm_ytx(context.pool, g, x.view(), weight.gradient);
        if (x.gradient) {
          const GradientTarget dx = gradient_target(context.arena, *x.gradient, x.rows, x.width);
          gemm_xw(context.pool, g, weight.value, weight.in, dx.accumulate ? 1.f : 0.f, dx.rows);
        }
      }
      if (residual) {
        add_gradient(context.pool, *residual, std::move(slot->buffer));
      }
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
