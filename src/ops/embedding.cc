#include "ops/embedding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/weights.h"
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

Var embed(const OpContext& context, const Param& table, float scale, std::span<const int32_t> tokens,
          std::span<const Lookup> added) {
  const int64_t width = table.in;
  const Var y = context.make(static_cast<int64_t>(tokens.size()), width);
  for (const Lookup& l : added) TRANSEPT_CHECK(l.table.in == width && l.row_of.size() == tokens.size());
  for_rows(context.pool, y.rows, width, [&](int64_t first, int64_t rows) {
    for (int64_t r = first; r < first + rows; ++r) {
      const int64_t token = tokens[static_cast<size_t>(r)];
      TRANSEPT_CHECK(token >= 0 && token < table.out);
      const Rows row = y.view().slice(r, 1);
      read_weight_row(table.weight(), token, row.data);
      if (scale != 1) scale_rows(scale, row);
      for (const Lookup& l : added) {
        const int64_t at = l.row_of[static_cast<size_t>(r)];
        TRANSEPT_CHECK(at >= 0 && at < l.table.out);
        add_rows({l.table.value + at * width, 1, width, width}, row);
      }
    }
  });
  if (context.tape) {
    std::vector<std::pair<Param, std::vector<int64_t>>> lookups;
    for (const Lookup& l : added) {
      if (l.table.gradient) lookups.emplace_back(l.table, std::vector<int64_t>(l.row_of.begin(), l.row_of.end()));
    }
    context.tape->record([&pool = context.pool, slot = y.gradient, rows = y.rows, width, table, scale,
                          lookups = std::move(lookups), token_of = std::vector<int32_t>(tokens.begin(), tokens.end())] {
      if (!slot->buffer) return;
      const Rows dy{slot->buffer.data(), rows, width, width};
      for (const auto& [lookup, row_of] : lookups) scatter_add(pool, dy, row_of, lookup.gradient);
      if (table.gradient) {
        // Nobody reads dy after this.
        if (scale != 1) {
          for_rows(pool, rows, width, [&](int64_t first, int64_t count) { scale_rows(scale, dy.slice(first, count)); });
        }
        scatter_add(pool, dy, token_of, table.gradient);
      }
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
