// RMSNorm and LayerNorm over the features of each row (kernels/norm.h), and the same over heads inside a row: QK-norm
// (arXiv:2010.04245, arXiv:2302.05442 section 2.1).
#pragma once

#include <cstdint>
#include <span>

#include "ops/tape.h"

namespace transept {

// weight and bias are vectors of x.width; each may be absent (arXiv:2402.00838 section 2.1 has neither). RMSNorm's
// factor is weight_offset + weight, 1 without a weight: Gemma stores its weights less 1.
Var rms_norm(const OpContext& context, const Var& x, const Param& weight, float weight_offset, float eps);
Var layer_norm(const OpContext& context, const Var& x, const Param& weight, const Param& bias, float eps);

enum class HeadNormKind { kRms, kLayer };

// Over what the statistics are taken, and the shape of the weight.
enum class HeadNormScope {
  kHead,      // each head; one weight [head_dim] that all of them share (Qwen 3)
  kEachHead,  // each head; weight [heads, head_dim] (Cohere)
  kAllHeads,  // all heads together; weight [heads * head_dim] (OLMo 2)
};

// A run of heads from `column` of each row on.
struct HeadNorm {
  int64_t column = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  HeadNormKind kind = HeadNormKind::kRms;
  HeadNormScope scope = HeadNormScope::kHead;
  Param weight;             // may be absent: a factor of 1
  float weight_offset = 0;  // of kRms, as in rms_norm; kLayer has none
  float eps = 0;
};

// Normalizes runs of heads (the queries, the keys) of every row of x; the runs do not overlap. x's former value is
// gone: the op that made it must not have kept it. With a tape, a copy of the columns of the runs is kept, and for each
// row and head (for each row, over all heads) one statistic, or two with kLayer.
void normalize_heads_in_place(const OpContext& context, const Var& x, std::span<const HeadNorm> parts);

}  // namespace transept
