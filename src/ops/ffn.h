// Feed-forward layers as one op: y = residual + dropout(a W2^T + b2) with a = act(x W1^T + b1), or a = act(gate) * up
// for the gated forms, where x W1^T + b1 holds gate and up side by side (arXiv:1706.03762 section 3.3,
// arXiv:2002.05202). The activation meets each tile of the first product in cache, and is computed again in the
// backward pass instead of being kept.
#pragma once

#include "kernels/activation.h"
#include "ops/linear.h"
#include "ops/tape.h"

namespace transept {

struct FfnParams {
  ActivationKind activation = ActivationKind::kSilu;
  bool gated = true;
  Param in, in_bias;  // [F or 2F, x.width]
  Param down;         // [y width, F]
};

// `end` is that of the second projection.
Var ffn(const OpContext& context, const Var& x, const FfnParams& params, const LinearEnd& end);

}  // namespace transept
