#include "ops/norm.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/norm.h"
#include "ops/parallel.h"

namespace transept {
namespace {

// Parameter gradients are sums over rows: at most this many partial sums, each over a fixed run of rows, added in
// order.
constexpr int64_t kPartials = 32;

// kernel(first_row, rows, partial) for each run; `partial` points at `vectors` * width zeroed floats whose totals go to
// `totals`.
template <class F>
void with_partial_sums(const OpContext& context, int64_t rows, int64_t width, std::initializer_list<float*> totals,
                       const F& kernel) {
  const int64_t run = std::max(rows_per_piece(width), (rows + kPartials - 1) / kPartials);
  const int64_t runs = (rows + run - 1) / run, size = width * static_cast<int64_t>(totals.size());
  const Buffer partials(context.arena, std::max<int64_t>(1, runs * size));
  context.pool.run(runs, [&](int64_t i, int) {
    float* mine = partials.data() + i * size;
    std::memset(mine, 0, static_cast<size_t>(size) * sizeof(float));
    kernel(i * run, std::min(run, rows - i * run), mine);
  });
  int64_t offset = 0;
  for (float* total : totals) {
    if (total) sum_columns({partials.data() + offset, runs, width, size}, total);
    offset += width;
  }
}

}  // namespace

Var rms_norm(const OpContext& context, const Var& x, const Param& weight, float weight_offset, float eps) {
  TRANSEPT_CHECK(!weight || weight.out == x.width);
  const Var y = context.make(x.rows, x.width);
  const Buffer rstd = context.tape ? Buffer(context.arena, x.rows) : Buffer();
  for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t rows) {
    rmsnorm_forward(x.view().slice(first, rows), weight.value, weight_offset, eps, y.view().slice(first, rows),
                    rstd ? rstd.data() + first : nullptr);
  });
  if (context.tape) {
    context.tape->record([context, x, weight, weight_offset, rstd, slot = y.gradient] {
      if (!slot->buffer) return;
      const ConstRows dy{slot->buffer.data(), x.rows, x.width, x.width};
      GradientSlot unwanted;
      const GradientTarget dx = gradient_target(context.arena, x.gradient ? *x.gradient : unwanted, x.rows, x.width);
      with_partial_sums(context, x.rows, x.width, {weight.gradient}, [&](int64_t first, int64_t rows, float* partial) {
        rmsnorm_backward(dy.slice(first, rows), x.view().slice(first, rows), weight.value, weight_offset,
                         rstd.data() + first, dx.rows.slice(first, rows), dx.accumulate, partial);
      });
      slot->buffer.reset();
    });
  }
  return y;
}

Var layer_norm(const OpContext& context, const Var& x, const Param& weight, const Param& bias, float eps) {
  TRANSEPT_CHECK((!weight || weight.out == x.width) && (!bias || bias.out == x.width));
  const Var y = context.make(x.rows, x.width);
  const Buffer statistics = context.tape ? Buffer(context.arena, 2 * x.rows) : Buffer();
  float* mean = statistics ? statistics.data() : nullptr;
  float* rstd = statistics ? statistics.data() + x.rows : nullptr;
  for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t rows) {
    layernorm_forward(x.view().slice(first, rows), weight.value, bias.value, eps, y.view().slice(first, rows),
                      mean ? mean + first : nullptr, rstd ? rstd + first : nullptr);
  });
  if (context.tape) {
    context.tape->record([context, x, weight, bias, statistics, mean, rstd, slot = y.gradient] {
      if (!slot->buffer) return;
      const ConstRows dy{slot->buffer.data(), x.rows, x.width, x.width};
      GradientSlot unwanted;
      const GradientTarget dx = gradient_target(context.arena, x.gradient ? *x.gradient : unwanted, x.rows, x.width);
      with_partial_sums(context, x.rows, x.width, {weight.gradient, bias.gradient},
                        [&](int64_t first, int64_t rows, float* partial) {
                          layernorm_backward(dy.slice(first, rows), x.view().slice(first, rows), weight.value,
                                             mean + first, rstd + first, dx.rows.slice(first, rows), dx.accumulate,
                                             partial, bias.gradient ? partial + x.width : nullptr);
                        });
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
