#include "ops/rope.h"

#include "base/check.h"
#include "kernels/rope.h"
#include "ops/parallel.h"

namespace transept {
namespace {

using Tables = std::vector<std::shared_ptr<const RotationTable>>;

// `x` starts at the first of the heads.
void rotate(ThreadPool& pool, Rows x, const BatchLayout& layout, int64_t heads, int64_t head_dim,
            std::span<const std::shared_ptr<const RotationTable>> tables, int direction) {
  for (size_t i = 0; i < layout.size(); ++i) {
    const SequenceRows& s = layout[i];
    const RotationTable& table = *tables[i];
    TRANSEPT_CHECK(2 * table.pairs <= head_dim && (heads - 1) * head_dim + 2 * table.pairs <= x.width);
    TRANSEPT_CHECK(s.first_row + s.rows <= x.rows && s.first_position + s.rows <= table.positions);
    for_rows(pool, s.rows, heads * head_dim, [&](int64_t first, int64_t rows) {
      const int64_t at = (s.first_position + first) * table.pairs;
      rope_rotate(table.interleaved ? RopePairing::kInterleaved : RopePairing::kHalfSplit,
                  x.slice(s.first_row + first, rows), heads, head_dim, 2 * table.pairs, table.cos.data() + at,
                  table.sin.data() + at, table.pairs, direction);
    });
  }
}

}  // namespace

void rotate_in_place(const OpContext& context, const Var& x, int64_t column, const BatchLayout& layout, int64_t heads,
                     int64_t head_dim, std::span<const std::shared_ptr<const RotationTable>> tables) {
  TRANSEPT_CHECK(tables.size() == layout.size());
  TRANSEPT_CHECK(column >= 0);
  const auto from_column = [column, rows = x.rows, width = x.width](float* data) {
    return Rows{data + column, rows, width - column, width};
  };
  rotate(context.pool, from_column(x.value.data()), layout, heads, head_dim, tables, +1);
  if (context.tape && x.gradient) {
    context.tape->record([&pool = context.pool, slot = x.gradient, from_column, layout, heads, head_dim,
                          kept = Tables(tables.begin(), tables.end())] {
      if (slot->buffer) rotate(pool, from_column(slot->buffer.data()), layout, heads, head_dim, kept, -1);
    });
  }
}

}  // namespace transept
