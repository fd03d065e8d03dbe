// Rotary position embedding in place (arXiv:2104.09864 section 3.2). The pairs of a head are its elements i and i +
// rotated/2 (half-split), or 2i and 2i + 1 (interleaved, as the paper writes it); pair i turns by the row's angle i:
// (a, b) -> (a cos - b sin, a sin + b cos). The tables may carry an amplitude (arXiv:2309.00071 section 3.4), by which
// pairs then grow. The gradient is the rotation by the negated angle, with the same amplitude.
#pragma once

#include <cstdint>

#include "tensor/rows.h"

namespace transept {

enum class RopePairing { kHalfSplit, kInterleaved };

// x holds `heads` heads, `head_dim` floats apart from the start of each row; the first `rotated` (even) elements of
// each head turn, the rest stay. cos and sin are [x.rows, rotated / 2], `table_stride` floats between rows. direction
// +1: forward; -1: the transposed map, which is the backward pass (and the inverse, where the amplitude is 1).
void rope_rotate(RopePairing pairing, Rows x, int64_t heads, int64_t head_dim, int64_t rotated, const float* cos,
                 const float* sin, int64_t table_stride, int direction);

}  // namespace transept
