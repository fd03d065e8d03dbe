#include "ops/clamp.h"

#include <vector>

#include "kernels/elementwise.h"
#include "ops/parallel.h"

namespace transept {

void clamp_in_place(const OpContext& context, const Var& x, float bound) {
  const int64_t rows = x.rows, width = x.width;
  const bool back = context.tape && x.gradient;
  std::vector<uint8_t> inside(back ? static_cast<size_t>(rows * width) : 0);
  for_rows(context.pool, rows, width, [&](int64_t first, int64_t count) {
    clamp_rows(bound, x.view().slice(first, count), back ? inside.data() + first * width : nullptr);
  });
  if (!back) return;
  context.tape->record([&pool = context.pool, slot = x.gradient, rows, width, inside = std::move(inside)] {
    if (!slot->buffer) return;
    const Rows g{slot->buffer.data(), rows, width, width};
    for_rows(pool, rows, width,
             [&](int64_t first, int64_t count) { mask_rows(inside.data() + first * width, g.slice(first, count)); });
  });
}

}  // namespace transept
