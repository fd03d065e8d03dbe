#include "ops/add.h"

#include "base/check.h"
#include "kernels/elementwise.h"
#include "ops/parallel.h"

namespace transept {

void add_in_place(const OpContext& context, const Var& y, const Var& x) {
  TRANSEPT_CHECK(x.rows == y.rows && x.width == y.width);
  for_rows(context.pool, y.rows, y.width, [&](int64_t first, int64_t count) {
    add_rows(ConstRows(x.view()).slice(first, count), y.view().slice(first, count));
  });
  if (context.tape && x.gradient) {
    // Both may hold the same buffer: what follows on the way back reads y's and is done with it before x's grows.
    context.tape->record([&pool = context.pool, from = y.gradient, to = x.gradient] {
      if (from->buffer) add_gradient(pool, *to, from->buffer);
    });
  }
}

}  // namespace transept
