// Rotary position embedding in double (arXiv:2104.09864 section 3.2): a pair of features is a complex number,
// multiplied by amplitude * exp(i angle). Pairings as in rope.h. Slow and plain: the truth that the kernel is tested
// against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/rope.h"

namespace transept::ref {

struct RopeShape {
  int64_t width, heads, head_dim, rotated;  // of dense rows of `width`
  RopePairing pairing = RopePairing::kHalfSplit;
  double amplitude = 1;
};

// angles: dense [rows, rotated / 2].
std::vector<double> rope(const RopeShape& shape, std::span<const double> x, std::span<const double> angles);
std::vector<double> rope_backward(const RopeShape& shape, std::span<const double> dy, std::span<const double> angles);

}  // namespace transept::ref
