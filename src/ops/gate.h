// Rows times a gate of their own: y = residual + dropout(sigmoid(logit) * x), as a shared expert's gate has it
// (transformers, Qwen2MoeSparseMoeBlock).
#pragma once

#include "ops/linear.h"
#include "ops/tape.h"

namespace transept {

// x [rows, width], logits [rows, 1]. `end.bias` must be absent.
Var gate_rows(const OpContext& context, const Var& x, const Var& logits, const LinearEnd& end);

}  // namespace transept
