// How many rows of logits exist at a time, for the op that makes them and the planner that counts them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace transept {

// 4 Mi floats, 16 MiB: small beside a batch's activations, and long enough sums over rows that reading and writing the
// head's gradient once a run stays a few percent of the product. Within 64 to 1024 rows.
constexpr int64_t logit_rows(int64_t vocab_size) {
  return std::clamp<int64_t>((int64_t{1} << 22) / vocab_size, 64, 1024);
}

}  // namespace transept
