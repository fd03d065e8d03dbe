// Scaled dot-product attention over fused projections (kernels/attention.h).
#pragma once

#include <functional>
#include <span>

#include "kernels/attention.h"
#include "ops/tape.h"
#include "tensor/batch_layout.h"

namespace transept {

// qkv [rows, (heads + 2 kv_heads) * head_dim]: all query heads, all key heads, all value heads of a token side by side.
// Result [rows, heads * head_dim]. Row r of a sequence sees the rows of its own sequence up to itself, and before them
// whatever `cached` names for it (in order of position); `cached(sequence)` may be empty. With a tape there must be no
// cache.
using CachedKeys = std::function<std::span<const KvChunk>(int64_t sequence)>;
Var attention(const OpContext& context, const Var& qkv, const AttentionShape& shape, const BatchLayout& layout,
              const CachedKeys& cached = {});

}  // namespace transept
