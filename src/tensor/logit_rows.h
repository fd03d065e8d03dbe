// How many rows of logits exist at a time: the head and the loss go through a batch in runs of rows, and the planner
// counts one run.
#pragma once

#include <algorithm>
#include <cstdint>

namespace transept {

// At most 4 Mi floats, within 64 to 1024 rows. 16 MiB of logits are small beside a batch's activations, and long enough
// sums over rows that reading and writing the head's gradient once a run stays a few percent of the product.
inline int64_t logit_rows(int64_t vocab_size) {
  constexpr int64_t kFloats = int64_t{4} << 20;
  return std::clamp<int64_t>(kFloats / vocab_size, 64, 1024);
}

}  // namespace transept
