// Biases that are added to attention scores and depend only on the head and on how far the key lies from the query:
// ALiBi's slopes (arXiv:2108.12409) and T5's buckets (arXiv:1910.10683 section 2.1). One table serves both.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/tape.h"

namespace transept {

struct ScoreBias {
  // [kv_heads, distances, heads / kv_heads]: entry (g, d, h) is added to the score of query head g * group + h where
  // query position - key position = first + d. Null: no bias.
  std::shared_ptr<const std::vector<float>> table;
  int64_t first = 0;
  int64_t distances = 0;
  // For learned biases: the parameter [buckets, heads] that the table was read from, and the bucket of each distance.
  // The gradient of the scores flows to it. Absent: the table is constant.
  Param parameter;
  std::vector<int32_t> bucket;

  explicit operator bool() const { return table != nullptr; }
};

}  // namespace transept
