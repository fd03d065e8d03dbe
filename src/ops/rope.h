// Rotary positions on the heads at the start of each row (kernels/rope.h), in place.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/tape.h"
#include "tensor/batch_layout.h"

namespace transept {

// cos and sin of the rotation angles of the positions from 0 on, [positions, pairs].
struct RotationTable {
  std::vector<float> cos, sin;
  int64_t pairs = 0;
  int64_t positions = 0;
  bool interleaved = false;  // pairs (2i, 2i + 1) instead of (i, i + pairs)
};

// Rotates the first `heads` heads of every row of x by the angles of its position. x's former value is gone: the op
// that made it must not have kept it. The table has all positions of the layout.
void rotate_in_place(const OpContext& context, const Var& x, const BatchLayout& layout, int64_t heads, int64_t head_dim,
                     std::shared_ptr<const RotationTable> table);

}  // namespace transept
