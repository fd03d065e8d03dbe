// Softmax cross-entropy on rows of logits, with the gradient written over the logits, so that no second [rows, vocab]
// array exists.
#pragma once

#include <cstdint>

#include "tensor/rows.h"

namespace transept {

inline constexpr int32_t kIgnoredTarget = -1;  // a row with this target has no loss, no count and no gradient

// loss[r] = log(sum_j exp(z[r, j])) - z[r, target[r]] in nats, 0 for an ignored row; the maximum is subtracted first.
// When `gradient_scale` is not 0, z becomes gradient_scale * (softmax(z) - onehot(target)), all zeros for an ignored
// row; else z is left.
void cross_entropy_rows(Rows logits, const int32_t* targets, float gradient_scale, float* loss);

}  // namespace transept
