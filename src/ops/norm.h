// RMSNorm and LayerNorm over the features of each row (kernels/norm.h).
#pragma once

#include "ops/tape.h"

namespace transept {

// weight and bias are vectors of x.width; each may be absent (arXiv:2402.00838 section 2.1 has neither). RMSNorm's
// factor is weight_offset + weight, 1 without a weight: Gemma stores its weights less 1.
Var rms_norm(const OpContext& context, const Var& x, const Param& weight, float weight_offset, float eps);
Var layer_norm(const OpContext& context, const Var& x, const Param& weight, const Param& bias, float eps);

}  // namespace transept
