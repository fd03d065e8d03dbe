#include "ops/cross_entropy.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cross_entropy.h"
#include "kernels/distillation.h"
#include "kernels/elementwise.h"
#include "kernels/gemm.h"
#include "kernels/weights.h"
#include "ops/linear.h"
#include "ops/parallel.h"
#include "tensor/logit_rows.h"

namespace transept {

namespace {

bool changes_logits(const LogitsEnd& end) { return end.scale != 1 || end.softcap != 0 || end.bias; }

// On columns of the logits from `column` on.
void finish_columns(const LogitsEnd& end, Rows logits, int64_t column) {
  finish_logits_rows(end.scale, end.bias ? end.bias.value + column : nullptr, end.softcap, logits);
}

void check_logits_end(const LogitsEnd& end, int64_t vocab) {
  TRANSEPT_CHECK(end.softcap >= 0 && (!end.bias || end.bias.out == vocab));
}

}  // namespace

void finish_logits(ThreadPool& pool, const LogitsEnd& end, Rows logits) {
  check_logits_end(end, logits.width);
  if (!changes_logits(end)) return;
  // One row of a large vocabulary is worth more than one thread.
  for_columns(pool, logits.width, [&](int64_t column, int64_t columns) {
    finish_columns(end, {logits.data + column, logits.rows, columns, logits.stride}, column);
  });
}

LossSum cross_entropy(const OpContext& context, const Var& x, const Param& head, const LogitsEnd& end,
                      std::span<const int32_t> targets, float gradient_scale, std::span<float> per_row,
                      const LossTeacher& teacher) {
  TRANSEPT_CHECK(head.in == x.width && static_cast<int64_t>(targets.size()) == x.rows);
  check_logits_end(end, head.out);
  for (const int32_t t : targets) TRANSEPT_CHECK(t == kIgnoredTarget || (t >= 0 && t < head.out));
  TRANSEPT_CHECK(per_row.empty() || per_row.size() == targets.size());
  const bool train = context.tape != nullptr && gradient_scale != 0;
  TRANSEPT_CHECK(head.value || !train);
  const bool flows_back = train && x.gradient;
  const int64_t vocab = head.out, run = std::min(logit_rows(vocab), x.rows);
  // The one that outlives this call comes first, so that the others leave no gap behind it.
  Buffer dx = flows_back ? Buffer(context.arena, x.rows * x.width) : Buffer();
  const Buffer logits(context.arena, std::max<int64_t>(1, run * vocab));
  const Buffer losses(context.arena, std::max<int64_t>(1, run));
  const Buffer taught = teacher.weight > 0 ? Buffer(context.arena, std::max<int64_t>(1, run * vocab)) : Buffer();
  LossSum sum;
  for (int64_t first = 0; first < x.rows; first += run) {
    const int64_t rows = std::min(run, x.rows - first);
    const Rows z{logits.data(), rows, vocab, vocab};
    const ConstRows h = ConstRows(x.view()).slice(first, rows);
    multiply(context.pool, h, head.weight(), vocab, z,
             changes_logits(end)
                 ? TileEpilogue([&](Rows tile, int64_t, int64_t column) { finish_columns(end, tile, column); })
                 : TileEpilogue());
    const Rows t{taught.data(), taught ? rows : 0, vocab, vocab};
    if (taught) teacher.logits(first, t);
    for_rows(context.pool, rows, vocab, [&](int64_t r, int64_t count) {
      const int32_t* target = targets.data() + first + r;
      const float scale = train ? gradient_scale : 0.f;
      if (taught) {
        distillation_rows(z.slice(r, count), end.softcap, ConstRows(t).slice(r, count), teacher.weight, target, scale,
                          losses.data() + r);
      } else {
        cross_entropy_rows(z.slice(r, count), end.softcap, target, scale, losses.data() + r);
      }
    });
    for (int64_t r = 0; r < rows; ++r) {
      const size_t at = static_cast<size_t>(first + r);
      sum.nats += static_cast<double>(losses.data()[r]);
      sum.tokens += targets[at] != kIgnoredTarget;
      if (!per_row.empty()) per_row[at] = losses.data()[r];
    }
    if (train) {
      add_bias_gradient(context, end.bias, z);
      if (end.scale != 1) {
        for_rows(context.pool, rows, vocab,
                 [&](int64_t r, int64_t count) { scale_rows(end.scale, z.slice(r, count)); });
      }
      if (head.gradient) gemm_ytx(context.pool, z, h, head.gradient);
      if (flows_back)
        gemm_xw(context.pool, z, head.value, x.width, 0.f, {dx.data() + first * x.width, rows, x.width, x.width});
    }
  }
  if (flows_back) {
    context.tape->record([&pool = context.pool, dx = std::move(dx), slot = x.gradient]() mutable {
      add_gradient(pool, *slot, std::move(dx));
    });
  }
  return sum;
}

}  // namespace transept
