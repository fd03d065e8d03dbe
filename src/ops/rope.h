// Rotary positions on heads inside each row (kernels/rope.h), in place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/tape.h"
#include "tensor/batch_layout.h"

namespace transept {

// cos and sin of the rotation angles of the positions from 0 on, [positions, pairs], each times an amplitude that the
// position rule may ask for (YaRN's attention factor): values and gradients are both multiplied by it.
struct RotationTable {
  std::vector<float> cos, sin;
  int64_t pairs = 0;
  int64_t positions = 0;
  bool interleaved = false;  // pairs are neighbours (2i, 2i + 1), not (i, i + pairs)
};

// Rotates the first 2 * pairs elements of `heads` heads, `head_dim` apart from `column` of every row of x on, by the
// angles of its position in its sequence's table: tables[s] is that of layout[s] and has all its positions; it may
// serve several sequences. x's former value is gone: the op that made it must not have kept it.
void rotate_in_place(const OpContext& context, const Var& x, int64_t column, const BatchLayout& layout, int64_t heads,
                     int64_t head_dim, std::span<const std::shared_ptr<const RotationTable>> tables);

}  // namespace transept
