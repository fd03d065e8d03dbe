#include "ops/ffn.h"

#include "base/check.h"
#include "kernels/gemm.h"
#include "kernels/weights.h"

namespace transept {
namespace {

// The tile of columns [column, column + columns) of the first product, offset by `half`.
void first_product(const FfnParams& p, ConstRows x, Rows z, const Tile& t, int64_t half) {
  const int64_t column = half + t.column;
  const Rows out{z.row(t.row) + column, t.rows, t.columns, z.stride};
  multiply_tile(x.slice(t.row, t.rows), p.in.weight(), column, t.columns, out);
  if (p.in_bias) add_bias(p.in_bias.value + column, out);
}

Rows part(Rows z, const Tile& t, int64_t half) { return {z.row(t.row) + half + t.column, t.rows, t.columns, z.stride}; }

}  // namespace

Var ffn(const OpContext& context, const Var& x, const FfnParams& p, const LinearEnd& end) {
  const int64_t f = p.down.in, in_width = p.gated ? 2 * f : f;
  TRANSEPT_CHECK(p.in.in == x.width && p.in.out == in_width && (!p.in_bias || p.in_bias.out == in_width));
  TRANSEPT_CHECK((p.in.value && p.down.value) || !context.tape);
  check_end(end, x.rows, p.down.out);
  Buffer z(context.arena, x.rows * in_width);
  const Rows z_view{z.data(), x.rows, in_width, in_width};
  const Var y = context.make(x.rows, p.down.out);
  {
    const Buffer a(context.arena, x.rows * f);
    const Rows a_view{a.data(), x.rows, f, f};
    for_tiles(context.pool, x.rows, f, [&](const Tile& t) {
      first_product(p, x.view(), z_view, t, 0);
      if (p.gated) {
        first_product(p, x.view(), z_view, t, f);
        gated_forward(p.activation, part(z_view, t, 0), part(z_view, t, f), part(a_view, t, 0));
      } else {
        activation_forward(p.activation, part(z_view, t, 0), part(a_view, t, 0));
      }
    });
    multiply(context.pool, a_view, p.down.weight(), p.down.out, y.view(),
             [&](Rows tile, int64_t row, int64_t column) { apply_end(end, tile, row, column); });
  }
  if (context.tape) {
    context.tape->record([context, x, p, z, z_view, f, bias = end.bias, dropout = end.dropout, slot = y.gradient,
                          residual = end.residual ? end.residual->gradient : nullptr]() mutable {
      if (!slot->buffer) return;
      const int64_t out = p.down.out;
      {
        const Buffer held = gradient_before_dropout(context, dropout, slot->buffer, x.rows, out);
        const ConstRows g{held.data(), x.rows, out, out};
        add_bias_gradient(context, bias, g);
        {
          // Each tile of da turns, in place, into the activation that dW2 needs, and z into dz.
          const Buffer a(context.arena, x.rows * f);
          const Rows a_view{a.data(), x.rows, f, f};
          gemm_xw(context.pool, g, p.down.value, f, 0.f, a_view, [&](Rows da, int64_t row, int64_t column) {
            const Tile t{row, da.rows, column, da.width};
            const Rows gate = part(z_view, t, 0);
            if (p.gated) {
              const Rows up = part(z_view, t, f);
              gated_backward(p.activation, gate, up, da, gate, up, da);
            } else {
              activation_backward(p.activation, gate, da, gate, da);
            }
          });
          if (p.down.gradient) gemm_ytx(context.pool, g, a_view, p.down.gradient);
        }
        const ConstRows dz = z_view;
        add_bias_gradient(context, p.in_bias, dz);
        if (p.in.gradient) gemm_ytx(context.pool, dz, x.view(), p.in.gradient);
        if (x.gradient) {
          const GradientTarget dx = gradient_target(context.arena, *x.gradient, x.rows, x.width);
          gemm_xw(context.pool, dz, p.in.value, x.width, dx.accumulate ? 1.f : 0.f, dx.rows);
        }
        z.reset();
      }
      if (residual) add_gradient(context.pool, *residual, std::move(slot->buffer));
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
