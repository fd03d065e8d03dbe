// RMSNorm and LayerNorm over the features of each row (kernels/norm.h).
#pragma once

#include "ops/tape.h"

namespace transept {

// weight and bias are vectors of x.width; bias may be absent for layer_norm.
Var rms_norm(const OpContext& context, const Var& x, const Param& weight, float eps);
Var layer_norm(const OpContext& context, const Var& x, const Param& weight, const Param& bias, float eps);

}  // namespace transept
