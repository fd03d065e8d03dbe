// Residual connections that a projection's end (ops/linear.h) cannot make, because a norm stands between.
#pragma once

#include "ops/tape.h"

namespace transept {

// y += x, both of one shape; the gradient of y flows to x as well. The op that made y must not need its value.
void add_in_place(const OpContext& context, const Var& y, const Var& x);

}  // namespace transept
