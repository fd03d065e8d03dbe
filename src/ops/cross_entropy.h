// The loss of a language model: a linear head and softmax cross-entropy in one op, in runs of rows, so that the logits
// of a whole batch never exist. Gradients of the hidden states and of the head are made in the same pass, since the
// scale of the loss is known beforehand.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ops/tape.h"

namespace transept {

struct LossSum {
  double nats = 0;     // sum over scored rows
  int64_t tokens = 0;  // rows whose target is not kIgnoredTarget
};

// What becomes of the products z of hidden states and head: softcap * tanh((scale * z + bias) / softcap)
// (arXiv:2408.00118 section 2), without the tanh where softcap is 0.
struct LogitsEnd {
  float scale = 1;
  float softcap = 0;
  Param bias;  // [vocab]; absent: none
};

// Another model that a loss is taken against besides (kernels/distillation.h).
struct LossTeacher {
  float weight = 0;                                     // 0: none; at the most 1
  std::function<void(int64_t first, Rows out)> logits;  // of the rows from `first` on, [rows, vocab]
};

// For inference: turns products into logits, in place.
void finish_logits(ThreadPool& pool, const LogitsEnd& end, Rows logits);

// Sum of -log softmax(logits)[target] over the rows, with the logits of x head^T and `end`. With a tape, the gradient
// that flows back is that of gradient_scale * nats. `per_row`, when not empty, receives each row's loss (0 where
// ignored). With a teacher, its share of each row's loss is the divergence from the teacher.
LossSum cross_entropy(const OpContext& context, const Var& x, const Param& head, const LogitsEnd& end,
                      std::span<const int32_t> targets, float gradient_scale, std::span<float> per_row = {},
                      const LossTeacher& teacher = {});

}  // namespace transept
