#include "ops/norm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/norm.h"
#include "ops/parallel.h"

namespace transept {
namespace {

// Parameter gradients are sums over rows: at most this many partial sums, each over a fixed run of rows, added in
// order.
constexpr int64_t kPartials = 32;

// kernel(first_row, rows, partial) for each run of rows of this width; `partial` points at one vector of `length`
// zeroed floats for each of `totals`, to which the vectors' sums over the runs are added.
template <class F>
void with_partial_sums(const OpContext& context, int64_t rows, int64_t width, int64_t length,
                       std::initializer_list<float*> totals, const F& kernel) {
  const int64_t run = std::max(rows_per_piece(width), (rows + kPartials - 1) / kPartials);
  const int64_t runs = (rows + run - 1) / run, size = length * static_cast<int64_t>(totals.size());
  const Buffer partials(context.arena, std::max<int64_t>(1, runs * size));
  context.pool.run(runs, [&](int64_t i, int) {
    float* mine = partials.data() + i * size;
    std::memset(mine, 0, static_cast<size_t>(size) * sizeof(float));
    kernel(i * run, std::min(run, rows - i * run), mine);
  });
  int64_t offset = 0;
  for (float* total : totals) {
    if (total) sum_columns({partials.data() + offset, runs, length, size}, total);
    offset += length;
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
      with_partial_sums(
          context, x.rows, x.width, x.width, {weight.gradient}, [&](int64_t first, int64_t rows, float* partial) {
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
      with_partial_sums(context, x.rows, x.width, x.width, {weight.gradient, bias.gradient},
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

namespace {

// A run of heads as rows to normalize: `groups` of them beside each other in each row of x, `width` features each, with
// `weight_step` from the weight of one to that of the next.
struct HeadGroups {
  int64_t groups, width, weight_step;

  explicit HeadGroups(const HeadNorm& n)
      : groups(n.scope == HeadNormScope::kAllHeads ? 1 : n.heads),
        width(n.scope == HeadNormScope::kAllHeads ? n.heads * n.head_dim : n.head_dim),
        weight_step(n.scope == HeadNormScope::kEachHead ? n.head_dim : 0) {}
  // Of the weight, and of its gradient.
  int64_t weights() const { return weight_step == 0 ? width : groups * width; }
};

// Columns of rows.
template <class R>
R columns(const R& rows, int64_t column, int64_t width) {
  return {rows.data + column, rows.rows, width, rows.stride};
}

const float* weight_of(const HeadNorm& n, int64_t offset) { return n.weight ? n.weight.value + offset : nullptr; }

// What the backward pass of one run of heads reads: the columns before the norm, [rows, heads * head_dim], and the
// statistics, [groups, rows] each.
struct HeadsKept {
  HeadNorm norm;
  Buffer before, rstd, mean;
};

// `from` and `to` are all rows of the run of heads; rstd and mean may be null.
void normalize_heads(ThreadPool& pool, const HeadNorm& n, ConstRows from, Rows to, float* rstd, float* mean) {
  const HeadGroups g(n);
  for_rows(pool, from.rows, from.width, [&](int64_t first, int64_t rows) {
    for (int64_t i = 0; i < g.groups; ++i) {
      const ConstRows in = columns(from.slice(first, rows), i * g.width, g.width);
      const Rows out = columns(to.slice(first, rows), i * g.width, g.width);
      const float* weight = weight_of(n, i * g.weight_step);
      const int64_t at = i * from.rows + first;
      if (n.kind == HeadNormKind::kRms) {
        rmsnorm_forward(in, weight, n.weight_offset, n.eps, out, rstd ? rstd + at : nullptr);
      } else {
        layernorm_forward(in, weight, nullptr, n.eps, out, mean ? mean + at : nullptr, rstd ? rstd + at : nullptr);
      }
    }
  });
}

// Turns the gradient of the normalized heads into that of the heads before, in place.
void normalize_heads_backward(const OpContext& context, const HeadsKept& kept, Rows gradient) {
  const HeadNorm& n = kept.norm;
  const HeadGroups g(n);
  const ConstRows before{kept.before.data(), gradient.rows, gradient.width, gradient.width};
  // Partial sums of the weight's gradient, for a run of rows as wide as all heads.
  with_partial_sums(context, gradient.rows, gradient.width, g.weights(), {n.weight.gradient},
                    [&](int64_t first, int64_t rows, float* partial) {
                      for (int64_t i = 0; i < g.groups; ++i) {
                        const ConstRows x = columns(before.slice(first, rows), i * g.width, g.width);
                        const Rows d = columns(gradient.slice(first, rows), i * g.width, g.width);
                        const float* weight = weight_of(n, i * g.weight_step);
                        const float* rstd = kept.rstd.data() + i * gradient.rows + first;
                        float* d_weight = partial + i * g.weight_step;
                        if (n.kind == HeadNormKind::kRms) {
                          rmsnorm_backward(d, x, weight, n.weight_offset, rstd, d, false, d_weight);
                        } else {
                          const float* mean = kept.mean.data() + i * gradient.rows + first;
                          layernorm_backward(d, x, weight, mean, rstd, d, false, d_weight, nullptr);
                        }
                      }
                    });
}

}  // namespace

void normalize_heads_in_place(const OpContext& context, const Var& x, std::span<const HeadNorm> parts) {
  const bool train = context.tape != nullptr && x.gradient;
  std::vector<HeadsKept> kept;
  for (const HeadNorm& n : parts) {
    const HeadGroups g(n);
    const int64_t width = n.heads * n.head_dim;
    TRANSEPT_CHECK(n.column >= 0 && n.heads > 0 && n.head_dim > 0 && n.column + width <= x.width);
    TRANSEPT_CHECK(!n.weight || n.weight.out * n.weight.in == g.weights());
    TRANSEPT_CHECK(n.kind == HeadNormKind::kRms || n.weight_offset == 0);
    const Rows heads = columns(x.view(), n.column, width);
    if (!train) {
      normalize_heads(context.pool, n, heads, heads, nullptr, nullptr);
      continue;
    }
    HeadsKept k{n, Buffer(context.arena, x.rows * width), Buffer(context.arena, x.rows * g.groups),
                n.kind == HeadNormKind::kLayer ? Buffer(context.arena, x.rows * g.groups) : Buffer()};
    const Rows before{k.before.data(), x.rows, width, width};
    for_rows(context.pool, x.rows, width, [&](int64_t first, int64_t rows) {
      copy_rows(ConstRows(heads).slice(first, rows), before.slice(first, rows));
    });
    normalize_heads(context.pool, n, before, heads, k.rstd.data(), k.mean ? k.mean.data() : nullptr);
    kept.push_back(std::move(k));
  }
  if (train) {
    context.tape->record([context, slot = x.gradient, rows = x.rows, width = x.width, kept = std::move(kept)] {
      if (!slot->buffer) return;
      const Rows dy{slot->buffer.data(), rows, width, width};
      for (const HeadsKept& k : kept) {
        normalize_heads_backward(context, k, columns(dy, k.norm.column, k.norm.heads * k.norm.head_dim));
      }
    });
  }
}

}  // namespace transept
