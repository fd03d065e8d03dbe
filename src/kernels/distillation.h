// Knowledge distillation on rows of logits (arXiv:1503.02531 section 2, at temperature 1): part of a loss is taken
// against targets, part against what another model, the teacher, thinks of the same rows. The gradient is written over
// the logits, as in cross_entropy.h.
#pragma once

#include <cstdint>

#include "tensor/rows.h"

namespace transept {

// With p = softmax(z) and q = softmax(teacher[r]), of as many columns as the logits:
//   loss[r] = (1 - weight) * -log p[target[r]] + weight * sum_j q_j log(q_j / p_j)
// in nats, 0 for an ignored row (kIgnoredTarget); `weight` is in [0, 1]. When `gradient_scale` is not 0, z becomes
// gradient_scale * (p - (1 - weight) onehot(target) - weight q), all zeros for an ignored row; else z is left.
// `softcap` is as in cross_entropy_rows. The teacher's logits are whole: a cap of its own is behind them.
void distillation_rows(Rows logits, float softcap, ConstRows teacher, float weight, const int32_t* targets,
                       float gradient_scale, float* loss);

}  // namespace transept
