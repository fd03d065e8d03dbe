// Softmax cross-entropy on rows of logits, with the gradient written over the logits, so that no second [rows, vocab]
// array exists.
#pragma once

#include <cstdint>

#include "tensor/rows.h"

namespace transept {

inline constexpr int32_t kIgnoredTarget = -1;  // a row with this target has no loss, no count and no gradient

// z = softcap * tanh((scale * z + bias) / softcap) in place (arXiv:2408.00118 section 2), without the tanh where
// softcap is 0. `bias` [width] may be null.
void finish_logits_rows(float scale, const float* bias, float softcap, Rows logits);

// loss[r] = log(sum_j exp(z[r, j])) - z[r, target[r]] in nats, 0 for an ignored row; the maximum is subtracted first.
// When `gradient_scale` is not 0, z becomes gradient_scale * (softmax(z) - onehot(target)), all zeros for an ignored
// row; else z is left. With a softcap (0: none), z holds capped logits, and what it becomes is the gradient of the
// logits before the cap: each element times 1 - (z / softcap)^2.
void cross_entropy_rows(Rows logits, float softcap, const int32_t* targets, float gradient_scale, float* loss);

}  // namespace transept
