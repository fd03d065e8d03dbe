// An activation on its own (kernels/activation.h), where no projection follows that could be fused with it.
#pragma once

#include "kernels/activation.h"
#include "ops/tape.h"

namespace transept {

Var activate(const OpContext& context, const Var& x, ActivationKind kind);

}  // namespace transept
