// Rotary position embedding in place (arXiv:2104.09864 section 3.2), half-split pairing: elements i and i + rotated/2
// of a head form a pair, rotated by the row's angle i: (a, b) -> (a cos - b sin, a sin + b cos). The gradient is the
// rotation by the negated angle.
#pragma once

#include <cstdint>

#include "tensor/rows.h"

namespace transept {

// x holds `heads` heads of `head_dim` floats from the start of each row (x.width >= heads * head_dim); the first
// `rotated` (even) elements of each head turn, the rest stay. cos and sin are [x.rows, rotated / 2], `table_stride`
// floats between rows. direction +1: forward; -1: the inverse rotation, which is the backward pass.
void rope_rotate(Rows x, int64_t heads, int64_t head_dim, int64_t rotated, const float* cos, const float* sin,
                 int64_t table_stride, int direction);

}  // namespace transept
