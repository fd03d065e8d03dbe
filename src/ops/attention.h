// Scaled dot-product attention over projections (kernels/attention.h): self-attention and cross-attention, with
// whatever the scores are made of.
#pragma once

#include <functional>
#include <span>

#include "kernels/attention.h"
#include "ops/score_bias.h"
#include "ops/tape.h"
#include "tensor/batch_layout.h"

namespace transept {

// Where queries, keys and values lie: heads side by side, from a column of each row on. Self-attention on a fused
// projection: q and kv are one Var. Columns that are not read get a gradient of zero; where there are gradients, the
// columns of keys and values, and in one Var those of the queries, do not overlap.
struct AttentionInputs {
  const Var& q;
  int64_t q_column;
  const Var& kv;
  int64_t k_column;
  int64_t v_column;
};

// Keys and values of a sequence that lie elsewhere, in order of position, all before its rows of `kv`; may be empty.
using CachedKeys = std::function<std::span<const KvChunk>(int64_t sequence)>;

// Result [q.rows, heads * value_dim]. Sequence s of the queries sees, as `shape` says, the rows of sequence s of the
// keys and before them what `cached` names. In self-attention both layouts are the same. With a tape there must be no
// cache; without, `kv` may be an empty Var when everything is cached. The pointers of `shape` are left null: they come
// from `bias`, whose table covers every visible pair, and `sinks` [heads]; either may be empty. In the backward pass
// their gradients are added to bias.parameter and sinks.
Var attention(const OpContext& context, const AttentionInputs& inputs, const AttentionShape& shape,
              const ScoreBias& bias, const Param& sinks, const BatchLayout& queries, const BatchLayout& keys,
              const CachedKeys& cached = {});

}  // namespace transept
