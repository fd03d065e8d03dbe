// Parts that the config.json of many families share.
#pragma once

#include <functional>

#include "convert/config_map.h"
#include "convert/rope_config.h"

namespace transept {

// vocab_size, hidden_size, tie_word_embeddings and initializer_range.
void map_model(ConfigMap& map, ArchSpec& spec, bool tied);
void map_max_positions(ConfigMap& map, ArchSpec& spec, const char* key, int64_t fallback);

// num_attention_heads, num_key_value_heads (null: as many), head_dim (null, and absent where the class has none:
// hidden_size / heads).
void map_heads(ConfigMap& map, GqaSpec& attention, std::optional<int64_t> kv_heads = std::nullopt,
               int64_t head_dim = 0);
// attention_bias, which stands for biases on all four projections.
void map_attention_bias(ConfigMap& map, GqaSpec& attention, bool fallback = false);

// clip_qkv, where the class clips before it norms; null: not.
void map_clip(ConfigMap& map, GqaSpec& attention);

// What the names of activations mean, for (act(x W1) W2) and for its gated form.
const ConfigMap::Choices<FfnKind>& plain_activations();
const ConfigMap::Choices<FfnKind>& gated_activations();

// One window for all layers; null: none. `absent` is what the class takes where there is no such key.
void map_window(ConfigMap& map, int64_t& window, int64_t absent);
// A layer's window, in families whose layers all have grouped-query attention.
int64_t& window_of(LayerSpec& layer);
// sliding_window with layer_types, where those are absent `slides`; for layers that are filled already. `full` changes
// a layer without a window when reading.
void map_layer_windows(ConfigMap& map, StackSpec& stack, int64_t absent, const std::function<bool(size_t)>& slides,
                       const std::function<void(LayerSpec&)>& full = {});

// For map_layer_windows: all layers slide but every n-th, n being sliding_window_pattern.
std::function<bool(size_t)> all_but_every(ConfigMap& map, int64_t fallback);

// A layer of the stack that has experts; when reading, or without one, `layer`.
const LayerSpec& sparse_layer(const ConfigMap& map, const StackSpec& stack, const LayerSpec& layer);
// num_experts or num_local_experts, whichever there is; writes the first.
void map_num_experts(ConfigMap& map, int64_t& experts, const char* key, const char* other, int64_t fallback);
// first_k_dense_replace: layers before that index are dense.
void map_first_dense(ConfigMap& map, StackSpec& stack, int64_t fallback);
// decoder_sparse_step and mlp_only_layers.
void map_dense_layers(ConfigMap& map, StackSpec& stack);

// The norm, with its eps under this key.
template <class Norm>
void map_norm(ConfigMap& map, LayerSpec& layer, const char* key, double eps, Norm like = {}) {
  Norm& norm = map.kind<Norm>(layer.norm, "norm");
  if (map.reading()) norm = like;
  map(key, norm.eps, eps);
}

// What acts in the layers.
template <class Position>
Position& map_position(ConfigMap& map, LayerSpec& layer) {
  return map.kind<Position>(layer.position, "position");
}

}  // namespace transept
