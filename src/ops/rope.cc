#include "ops/rope.h"

#include "base/check.h"
#include "kernels/rope.h"
#include "ops/parallel.h"

namespace transept {
namespace {

void rotate(ThreadPool& pool, Rows x, const BatchLayout& layout, int64_t heads, int64_t head_dim,
            const RotationTable& table, int direction) {
  TRANSEPT_CHECK(heads * head_dim <= x.width && 2 * table.pairs <= head_dim);
  for (const SequenceRows& s : layout) {
    TRANSEPT_CHECK(s.first_row + s.rows <= x.rows && s.first_position + s.rows <= table.positions);
    for_rows(pool, s.rows, heads * head_dim, [&](int64_t first, int64_t rows) {
      const int64_t at = (s.first_position + first) * table.pairs;
      rope_rotate(x.slice(s.first_row + first, rows), heads, head_dim, 2 * table.pairs, table.cos.data() + at,
                  table.sin.data() + at, table.pairs, direction);
    });
  }
}

}  // namespace

void rotate_in_place(const OpContext& context, const Var& x, const BatchLayout& layout, int64_t heads, int64_t head_dim,
                     std::shared_ptr<const RotationTable> table) {
  rotate(context.pool, x.view(), layout, heads, head_dim, *table, +1);
  if (context.tape && x.gradient) {
    context.tape->record([&pool = context.pool, slot = x.gradient, rows = x.rows, width = x.width, layout, heads,
                          head_dim, table = std::move(table)] {
      if (slot->buffer) rotate(pool, {slot->buffer.data(), rows, width, width}, layout, heads, head_dim, *table, -1);
    });
  }
}

}  // namespace transept
