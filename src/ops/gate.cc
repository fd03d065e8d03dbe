#include "ops/gate.h"

#include <cmath>

#include "base/check.h"
#include "ops/parallel.h"

namespace transept {
namespace {

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

Var gate_rows(const OpContext& context, const Var& x, const Var& logits, const LinearEnd& end) {
  TRANSEPT_CHECK(logits.rows == x.rows && logits.width == 1 && !end.bias);
  check_end(end, x.rows, x.width);
  const Var y = context.make(x.rows, x.width);
  for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      const float gate = sigmoid(*logits.view().row(r));
      for (int64_t c = 0; c < x.width; ++c) y.view().row(r)[c] = gate * x.view().row(r)[c];
    }
    apply_end(end, y.view().slice(first, count), first, 0);
  });
  if (context.tape) {
    context.tape->record([context, x, logits, dropout = end.dropout, slot = y.gradient,
                          residual = end.residual ? end.residual->gradient : nullptr] {
      if (!slot->buffer) return;
      {
        const Buffer held = gradient_before_dropout(context, dropout, slot->buffer, x.rows, x.width);
        const ConstRows g{held.data(), x.rows, x.width, x.width};
        const auto target = [&](const Var& v) {
          return v.gradient ? gradient_target(context.arena, *v.gradient, v.rows, v.width) : GradientTarget{};
        };
        const GradientTarget dx = target(x), dl = target(logits);
        for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t count) {
          for (int64_t r = first; r < first + count; ++r) {
            const float gate = sigmoid(*logits.view().row(r));
            const float *dy = g.row(r), *in = x.view().row(r);
            if (dx.rows.data) {
              float* const to = dx.rows.row(r);
              for (int64_t c = 0; c < x.width; ++c) to[c] = gate * dy[c] + (dx.accumulate ? to[c] : 0.f);
            }
            if (dl.rows.data) {
              float dot = 0;
              for (int64_t c = 0; c < x.width; ++c) dot += dy[c] * in[c];
              float* const to = dl.rows.row(r);
              *to = dot * gate * (1 - gate) + (dl.accumulate ? *to : 0.f);
            }
          }
        });
      }
      if (residual) add_gradient(context.pool, *residual, std::move(slot->buffer));
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
