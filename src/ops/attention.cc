#include "ops/attention.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace transept {
namespace {

struct Offsets {
  int64_t k, v, width;
  explicit Offsets(const AttentionShape& s)
      : k(s.heads * s.head_dim), v(k + s.kv_heads * s.head_dim), width(v + s.kv_heads * s.head_dim) {}
};

// The sequences of a batch with the keys that each sees; `keys` owns the chunk lists.
std::vector<AttentionSequence> sequences_of(const AttentionShape& shape, const BatchLayout& layout, const float* qkv,
                                            float* out, float* lse, const CachedKeys& cached,
                                            std::vector<std::vector<KvChunk>>& keys) {
  const Offsets at(shape);
  keys.resize(layout.size());
  std::vector<AttentionSequence> batch;
  for (size_t s = 0; s < layout.size(); ++s) {
    const SequenceRows& rows = layout[s];
    const float* row = qkv + rows.first_row * at.width;
    if (cached) {
      const auto before = cached(static_cast<int64_t>(s));
      keys[s].assign(before.begin(), before.end());
    }
    keys[s].push_back({row + at.k, row + at.v, at.width, rows.rows, rows.first_position});
    batch.push_back({row, at.width, rows.rows, rows.first_position, keys[s], out + rows.first_row * at.k, at.k,
                     lse ? lse + rows.first_row * shape.heads : nullptr});
  }
  return batch;
}

}  // namespace

Var attention(const OpContext& context, const Var& qkv, const AttentionShape& shape, const BatchLayout& layout,
              const CachedKeys& cached) {
  const Offsets at(shape);
  TRANSEPT_CHECK(qkv.width == at.width && !(context.tape && cached));
  int64_t covered = 0;  // rows of no sequence would be left as they are, in the result and in the gradient
  for (const SequenceRows& s : layout) {
    TRANSEPT_CHECK(s.first_row == covered);
    covered += s.rows;
  }
  TRANSEPT_CHECK(covered == qkv.rows);
  const Var out = context.make(qkv.rows, at.k);
  const bool flows_back = context.tape && qkv.gradient;
  const Buffer lse = flows_back ? Buffer(context.arena, qkv.rows * shape.heads) : Buffer();
  {
    std::vector<std::vector<KvChunk>> keys;
    const auto batch =
        sequences_of(shape, layout, qkv.value.data(), out.value.data(), lse ? lse.data() : nullptr, cached, keys);
    const Buffer workspace(context.arena, context.pool.threads() * attention_forward_workspace(shape));
    attention_forward(context.pool, shape, batch, workspace.data());
  }
  if (flows_back) {
    context.tape->record([context, qkv, out = out.value, slot = out.gradient, lse, shape, layout] {
      if (!slot->buffer) return;
      const Offsets o(shape);
      std::vector<std::vector<KvChunk>> keys;
      const auto batch = sequences_of(shape, layout, qkv.value.data(), out.data(), lse.data(), {}, keys);
      // The kernel overwrites; what another consumer has left is added to it afterwards.
      Buffer dqkv(context.arena, qkv.rows * qkv.width);
      std::vector<AttentionGradient> gradients;
      int64_t longest = 1;
      for (size_t s = 0; s < layout.size(); ++s) {
        float* row = dqkv.data() + layout[s].first_row * qkv.width;
        gradients.push_back({batch[s], slot->buffer.data() + layout[s].first_row * o.k, row, row + o.k, row + o.v});
        longest = std::max(longest, layout[s].rows);
      }
      {
        const Buffer workspace(context.arena, context.pool.threads() * attention_backward_workspace(shape, longest));
        attention_backward(context.pool, shape, gradients, workspace.data());
      }
      add_gradient(context.pool, *qkv.gradient, std::move(dqkv));
      slot->buffer.reset();
    });
  }
  return out;
}

}  // namespace transept
