// RMSNorm (arXiv:1910.07467) and LayerNorm (arXiv:1607.06450) over the features of each row. One call runs on one
// thread; callers split rows. float32 in and out; sums over features accumulate in float32, lane by lane, then across
// lanes.
#pragma once

#include "tensor/rows.h"

namespace transept {

// y = x * rstd * (weight_offset + weight) with rstd[r] = 1 / sqrt(mean(x^2) + eps); a null `weight` is a factor of 1,
// whatever the offset. `rstd` [rows] may be null when no backward pass follows. y may be x.
void rmsnorm_forward(ConstRows x, const float* weight, float weight_offset, float eps, Rows y, float* rstd);

// With g = dy * (weight_offset + weight) and xhat = x * rstd:  dx (+)= rstd * (g - xhat * mean(g * xhat)),  dweight +=
// sum_rows dy * xhat; without a weight, dweight is not touched. `accumulate` chooses += or = for dx. dx may alias dy.
void rmsnorm_backward(ConstRows dy, ConstRows x, const float* weight, float weight_offset, const float* rstd, Rows dx,
                      bool accumulate, float* dweight);

// y = (x - mean) * rstd * weight + bias; `weight`, a factor of 1, and `bias` may each be null; `mean`, `rstd` [rows]
// may both be null. y may be x.
void layernorm_forward(ConstRows x, const float* weight, const float* bias, float eps, Rows y, float* mean,
                       float* rstd);

// With g = dy * weight and xhat = (x - mean) * rstd:  dx (+)= rstd * (g - mean(g) - xhat * mean(g * xhat)),
// dweight += sum_rows dy * xhat (not without a weight),  dbias += sum_rows dy (when not null). dx may alias dy.
void layernorm_backward(ConstRows dy, ConstRows x, const float* weight, const float* mean, const float* rstd, Rows dx,
                        bool accumulate, float* dweight, float* dbias);

}  // namespace transept
