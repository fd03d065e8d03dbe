// Where a model looks: the attention probabilities of each layer and head on a text. The fused operation never forms
// them, so they are made again, in double, from the queries and keys that it receives, with the model's biases by
// position, window, soft-cap and sinks (kernels/attention_ref.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/model.h"

namespace transept {

// One head of one layer. The row of a query holds its probability of each key, 0 where it sees none; a row adds up to
// 1, or with a sink to what the sink leaves.
struct AttentionMap {
  int64_t layer = 0, head = 0;
  int64_t tokens = 0;
  std::vector<float> probabilities;  // [tokens, tokens]
};

// The most elements of all maps together: 1 GiB.
inline constexpr int64_t kMostMapElements = int64_t{1} << 28;

// The self-attention of every layer, by layer and head; of an encoder-decoder, its encoder's, which is what reads a
// text. `op` has no tape. InputError when there is no token, one is not the model's, or the maps would be too large.
std::vector<AttentionMap> attention_maps(const Model& model, const OpContext& op, std::span<const int32_t> tokens);

// Means over a map's rows; of the last two, over the rows behind the first, 0 when there are none. What a sink takes
// counts nowhere.
struct MapStatistics {
  double entropy = 0;         // nats
  double distance = 0;        // tokens between query and key, weighted by probability
  double first_token = 0;     // probability of the first token
  double previous_token = 0;  // probability of the token before the query
};
MapStatistics map_statistics(const AttentionMap& map);

}  // namespace transept
