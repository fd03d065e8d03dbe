// Exact parameter counts, from ArchSpec::declare: each tensor once, however often it is used.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/count.h"
#include "spec/arch_spec.h"

namespace transept {

// Equal neighbouring layers of one stack.
struct LayerGroup {
  bool encoder = false;  // of an encoder-decoder's encoder
  int64_t first = 0, count = 0;
  int64_t attention = 0, cross_attention = 0, ffn = 0, norm = 0;  // parameters of one layer
  int64_t active = 0;                                             // of one layer, that one token touches
  int64_t kv_elements_per_token = 0;                              // that a cache keeps of one layer
  int64_t source_kv_elements_per_token = 0;                       // of cross-attention, per source token
  int64_t sliding_window = 0;                                     // 0: none
  int64_t total() const { return attention + cross_attention + ffn + norm; }
  bool operator==(const LayerGroup&) const = default;
};

struct ParameterCounts {
  int64_t total = 0;
  int64_t active = 0;                          // that one token touches
  int64_t embedding = 0;                       // the token embedding table
  int64_t active_without_input_embedding = 0;  // the table counts when it is the head as well
  // With embedding, these add up to total.
  int64_t position = 0, attention = 0, cross_attention = 0, ffn = 0, norm = 0, pooler = 0, head = 0;
  int64_t matrices = 0;  // elements of the matrices that multiply a token, the head's table included when it is tied
  std::vector<LayerGroup> layers;
};

ParameterCounts count_parameters(const ArchSpec& spec);

Count elements(const ParamDecl& decl);

// Keys a token of this layer sees and caches at most: 0 when it has no window.
int64_t window_of(const LayerSpec& layer);
// Tokens of `context` that stand in such a layer's cache.
int64_t cached_tokens(int64_t sliding_window, int64_t context);

}  // namespace transept
