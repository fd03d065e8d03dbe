#include "ops/activation.h"

#include "ops/parallel.h"

namespace transept {

Var activate(const OpContext& context, const Var& x, ActivationKind kind) {
  const Var y = context.make(x.rows, x.width);
  for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t count) {
    activation_forward(kind, ConstRows(x.view()).slice(first, count), y.view().slice(first, count));
  });
  if (context.tape && x.gradient) {
    context.tape->record([context, x, kind, slot = y.gradient] {
      if (!slot->buffer) return;
      Buffer dx(context.arena, x.rows * x.width);
      const Rows dy{slot->buffer.data(), x.rows, x.width, x.width}, to{dx.data(), x.rows, x.width, x.width};
      for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t count) {
        const Rows d = dy.slice(first, count);
        activation_backward(kind, ConstRows(x.view()).slice(first, count), d, to.slice(first, count), d);
      });
      add_gradient(context.pool, *x.gradient, std::move(dx));
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
