// The loss of a language model: a linear head and softmax cross-entropy in one op, in runs of rows, so that the logits
// of a whole batch never exist. Gradients of the hidden states and of the head are made in the same pass, since the
// scale of the loss is known beforehand.
#pragma once

#include <cstdint>
#include <span>

#include "ops/tape.h"

namespace transept {

struct LossSum {
  double nats = 0;     // sum over scored rows
  int64_t tokens = 0;  // rows whose target is not kIgnoredTarget
};

// Sum of -log softmax(x head^T)[target] over the rows. With a tape, the gradient that flows back is that of
// gradient_scale * nats. `per_row`, when not empty, receives each row's loss (0 where ignored).
LossSum cross_entropy(const OpContext& context, const Var& x, const Param& head, std::span<const int32_t> targets,
                      float gradient_scale, std::span<float> per_row = {});

// Rows of logits that exist at a time for a vocabulary.
int64_t loss_rows(int64_t vocab_size);

}  // namespace transept
