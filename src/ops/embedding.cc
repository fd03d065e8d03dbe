#include "ops/embedding.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "ops/parallel.h"

namespace transept {
namespace {

// gradient[index[r], :] += dy[r, :]. Each worker owns some columns and goes through the rows in order.
template <class Index>
void scatter_add(ThreadPool& pool, ConstRows dy, const std::vector<Index>& index, float* gradient) {
  for_columns(pool, dy.width, [&](int64_t column, int64_t columns) {
    for (int64_t r = 0; r < dy.rows; ++r) {
      add_rows(
          {dy.row(r) + column, 1, columns, columns},
          {gradient + static_cast<int64_t>(index[static_cast<size_t>(r)]) * dy.width + column, 1, columns, columns});
    }
  });
}

}  // namespace

Var embed(const OpContext& context, const Param& table, std::span<const int32_t> tokens, const Param& positions,
          std::span<const int64_t> position_of) {
  const int64_t width = table.in;
  const Var y = context.make(static_cast<int64_t>(tokens.size()), width);
  TRANSEPT_CHECK(!positions || (positions.in == width && position_of.size() == tokens.size()));
  for_rows(context.pool, y.rows, width, [&](int64_t first, int64_t rows) {
    for (int64_t r = first; r < first + rows; ++r) {
      const int64_t token = tokens[static_cast<size_t>(r)];
      TRANSEPT_CHECK(token >= 0 && token < table.out);
      const Rows row = y.view().slice(r, 1);
      copy_rows({table.value + token * width, 1, width, width}, row);
      if (positions) {
        const int64_t at = position_of[static_cast<size_t>(r)];
        TRANSEPT_CHECK(at >= 0 && at < positions.out);
        add_rows({positions.value + at * width, 1, width, width}, row);
      }
    }
  });
  if (context.tape) {
    context.tape->record([&pool = context.pool, slot = y.gradient, rows = y.rows, width, table, positions,
                          token_of = std::vector<int32_t>(tokens.begin(), tokens.end()),
                          at = std::vector<int64_t>(position_of.begin(), position_of.end())] {
      if (!slot->buffer) return;
      const ConstRows dy{slot->buffer.data(), rows, width, width};
      if (table.gradient) scatter_add(pool, dy, token_of, table.gradient);
      if (positions && positions.gradient) scatter_add(pool, dy, at, positions.gradient);
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
