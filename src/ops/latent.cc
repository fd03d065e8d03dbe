#include "ops/latent.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/gemm.h"

namespace transept {
namespace {

// Rows of a tile: a product of them with one head's weights runs at the library's rate (kernels/gemm.cc).
constexpr int64_t kPiece = 256;
// Columns of the latent that one worker makes the gradient of.
constexpr int64_t kLatentPiece = 256;

int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

// body(head, first row, rows) for every head and piece of rows.
template <class F>
void for_heads(ThreadPool& pool, int64_t heads, int64_t rows, const F& body) {
  pool.run(heads * pieces(rows, kPiece), [&](int64_t i, int) {
    const int64_t first = i / heads * kPiece;
    body(i % heads, first, std::min(kPiece, rows - first));
  });
}

const float* key_weight(const float* weight, const LatentHeads& h, int64_t head) {
  return weight + head * (h.nope + h.value) * h.rank;
}
const float* value_weight(const float* weight, const LatentHeads& h, int64_t head) {
  return key_weight(weight, h, head) + h.nope * h.rank;
}

void check_weight(const Param& weight, const LatentHeads& h) {
  TRANSEPT_CHECK(weight.out == h.heads * (h.nope + h.value) && weight.in == h.rank);
}

// Of one head, the columns of its key and of its value, out of expanded rows or their gradients.
struct HeadColumns {
  int64_t key, turning, value;
  HeadColumns(const LatentHeads& h, int64_t head)
      : key(head * h.key()), turning(key + h.nope), value(h.keys() + head * h.value) {}
};

// d_records = sum over heads of dK_h W_UK,h + dV_h W_UV,h, and behind it the sum of the turning keys' gradients.
void records_gradient(ThreadPool& pool, ConstRows d_out, const float* weight, const LatentHeads& h,
                      const GradientTarget& target) {
  const int64_t columns = pieces(h.rank, kLatentPiece);
  pool.run(columns * pieces(d_out.rows, kPiece), [&](int64_t i, int) {
    const int64_t first = i / columns * kPiece, rows = std::min(kPiece, d_out.rows - first);
    const int64_t column = i % columns * kLatentPiece, width = std::min(kLatentPiece, h.rank - column);
    float* const to = target.rows.row(first) + column;
    for (int64_t head = 0; head < h.heads; ++head) {
      const HeadColumns at(h, head);
      const float beta = head > 0 || target.accumulate ? 1.f : 0.f;
      gemm_tile(Transpose::kNo, Transpose::kNo, rows, width, h.nope, 1, d_out.row(first) + at.key, d_out.stride,
                key_weight(weight, h, head) + column, h.rank, beta, to, target.rows.stride);
      gemm_tile(Transpose::kNo, Transpose::kNo, rows, width, h.value, 1, d_out.row(first) + at.value, d_out.stride,
                value_weight(weight, h, head) + column, h.rank, 1, to, target.rows.stride);
    }
    if (column > 0) return;
    const Rows turning{target.rows.row(first) + h.rank, rows, h.rope, target.rows.stride};
    for (int64_t r = 0; r < rows && !target.accumulate; ++r) std::fill_n(turning.row(r), h.rope, 0.f);
    for (int64_t head = 0; head < h.heads; ++head)
      add_rows({d_out.row(first) + HeadColumns(h, head).turning, rows, h.rope, d_out.stride}, turning);
  });
}

// dW_UK,h += dK_h^T C and dW_UV,h += dV_h^T C, the sum over rows being one product.
void weight_gradient(ThreadPool& pool, ConstRows d_out, ConstRows records, const LatentHeads& h, float* gradient) {
  pool.run(2 * h.heads, [&](int64_t i, int) {
    const int64_t head = i / 2, width = i % 2 == 0 ? h.nope : h.value;
    const HeadColumns at(h, head);
    float* const to = gradient + (head * (h.nope + h.value) + (i % 2 == 0 ? 0 : h.nope)) * h.rank;
    gemm_tile(Transpose::kYes, Transpose::kNo, width, h.rank, d_out.rows, 1,
              d_out.data + (i % 2 == 0 ? at.key : at.value), d_out.stride, records.data, records.stride, 1, to, h.rank);
  });
}

}  // namespace

void expand_records(ThreadPool& pool, ConstRows records, const Param& weight, const LatentHeads& h, Rows out) {
  check_weight(weight, h);
  TRANSEPT_CHECK(records.width == h.record() && out.rows == records.rows && out.width == h.keys() + h.values());
  for_heads(pool, h.heads, records.rows, [&](int64_t head, int64_t first, int64_t rows) {
    const HeadColumns at(h, head);
    const float* const from = records.row(first);
    float* const to = out.row(first);
    gemm_tile(Transpose::kNo, Transpose::kYes, rows, h.nope, h.rank, 1, from, records.stride,
              key_weight(weight.value, h, head), h.rank, 0, to + at.key, out.stride);
    copy_rows({from + h.rank, rows, h.rope, records.stride}, {to + at.turning, rows, h.rope, out.stride});
    gemm_tile(Transpose::kNo, Transpose::kYes, rows, h.value, h.rank, 1, from, records.stride,
              value_weight(weight.value, h, head), h.rank, 0, to + at.value, out.stride);
  });
}

Var expand_records(const OpContext& context, const Var& records, const Param& weight, const LatentHeads& h) {
  const Var out = context.make(records.rows, h.keys() + h.values());
  expand_records(context.pool, records.view(), weight, h, out.view());
  if (context.tape) {
    context.tape->record([context, records, weight, h, slot = out.gradient, width = out.width] {
      if (!slot->buffer) return;
      const ConstRows d_out{slot->buffer.data(), records.rows, width, width};
      if (weight.gradient && records.rows > 0) weight_gradient(context.pool, d_out, records.view(), h, weight.gradient);
      if (records.gradient) {
        records_gradient(context.pool, d_out, weight.value, h,
                         gradient_target(context.arena, *records.gradient, records.rows, records.width));
      }
      slot->buffer.reset();
    });
  }
  return out;
}

Var absorb_queries(const OpContext& context, const Var& q, const Param& weight, const LatentHeads& h) {
  check_weight(weight, h);
  TRANSEPT_CHECK(!context.tape && q.width == h.keys());
  const Var out = context.make(q.rows, h.heads * h.record());
  for_heads(context.pool, h.heads, q.rows, [&](int64_t head, int64_t first, int64_t rows) {
    const float* const from = q.view().row(first) + head * h.key();
    float* const to = out.view().row(first) + head * h.record();
    gemm_tile(Transpose::kNo, Transpose::kNo, rows, h.rank, h.nope, 1, from, q.width, key_weight(weight.value, h, head),
              h.rank, 0, to, out.width);
    copy_rows({from + h.nope, rows, h.rope, q.width}, {to + h.rank, rows, h.rope, out.width});
  });
  return out;
}

Var values_of_latents(const OpContext& context, const Var& latents, const Param& weight, const LatentHeads& h) {
  check_weight(weight, h);
  TRANSEPT_CHECK(!context.tape && latents.width == h.heads * h.rank);
  const Var out = context.make(latents.rows, h.values());
  for_heads(context.pool, h.heads, latents.rows, [&](int64_t head, int64_t first, int64_t rows) {
    gemm_tile(Transpose::kNo, Transpose::kYes, rows, h.value, h.rank, 1, latents.view().row(first) + head * h.rank,
              latents.width, value_weight(weight.value, h, head), h.rank, 0, out.view().row(first) + head * h.value,
              out.width);
  });
  return out;
}

}  // namespace transept
