#include "convert/families/common.h"

namespace transept {

void map_model(ConfigMap& map, ArchSpec& spec, bool tied) {
  map("vocab_size", spec.vocab_size);
  map("hidden_size", spec.hidden_size);
  map("tie_word_embeddings", spec.tie_word_embeddings, tied);
  map("initializer_range", spec.initializer_range, 0.02);
}

void map_max_positions(ConfigMap& map, ArchSpec& spec, const char* key, int64_t fallback) {
  map(key, spec.max_position_embeddings, fallback);
}

void map_heads(ConfigMap& map, GqaSpec& attention, std::optional<int64_t> kv_heads, int64_t head_dim) {
  map("num_attention_heads", attention.num_attention_heads);
  const bool named = map.has("num_key_value_heads");
  map("num_key_value_heads", attention.num_key_value_heads,
      named ? attention.num_attention_heads : kv_heads.value_or(attention.num_attention_heads));
  map("head_dim", attention.head_dim, head_dim);
}

void map_attention_bias(ConfigMap& map, GqaSpec& attention, bool fallback) {
  map("attention_bias", attention.qkv_bias, fallback);
  if (map.reading()) attention.output_bias = attention.qkv_bias;
}

void map_clip(ConfigMap& map, GqaSpec& attention) {
  constexpr const char* kKey = "clip_qkv";
  if (!map.reading()) return map.write(kKey, attention.clip_qkv > 0 ? Json(attention.clip_qkv) : Json());
  map(kKey, attention.clip_qkv, 0.0);
}

const ConfigMap::Choices<FfnKind>& plain_activations() {
  static const ConfigMap::Choices<FfnKind> all{
      {"gelu_new", FfnKind::kGeluTanh},  {"gelu_pytorch_tanh", FfnKind::kGeluTanh},
      {"gelu_fast", FfnKind::kGeluTanh}, {"gelu", FfnKind::kGelu},
      {"gelu_python", FfnKind::kGelu},   {"relu", FfnKind::kRelu},
      {"relu2", FfnKind::kReluSquared},  {"silu", FfnKind::kSilu},
      {"swish", FfnKind::kSilu}};
  return all;
}

const ConfigMap::Choices<FfnKind>& gated_activations() {
  static const ConfigMap::Choices<FfnKind> all{
      {"silu", FfnKind::kSwiglu},    {"swish", FfnKind::kSwiglu},  {"gelu_pytorch_tanh", FfnKind::kGeglu},
      {"gelu_new", FfnKind::kGeglu}, {"gelu", FfnKind::kGegluErf}, {"gelu_python", FfnKind::kGegluErf},
      {"relu", FfnKind::kReglu},     {"sigmoid", FfnKind::kGlu}};
  return all;
}

void map_window(ConfigMap& map, int64_t& window, int64_t absent) {
  if (!map.reading()) return map.write("sliding_window", window > 0 ? Json(window) : Json());
  map("sliding_window", window, map.has("sliding_window") ? 0 : absent);
}

int64_t& window_of(LayerSpec& layer) {
  auto* attention = std::get_if<GqaSpec>(&layer.attention);
  if (!attention) throw Inexpressible{"attention of a layer is not gqa"};
  return attention->sliding_window;
}

void map_layer_windows(ConfigMap& map, StackSpec& stack, int64_t absent, const std::function<bool(size_t)>& slides,
                       const std::function<void(LayerSpec&)>& full) {
  constexpr const char *kSliding = "sliding_attention", *kFull = "full_attention";
  if (!map.reading()) {
    int64_t window = 0;
    Json types = Json::array();
    for (LayerSpec& layer : stack.layers) {
      const int64_t own = window_of(layer);
      types.push_back(own > 0 ? kSliding : kFull);
      if (own > 0) window = own;
    }
    map.write("layer_types", types);
    return map_window(map, window, absent);
  }
  int64_t window = 0;
  map_window(map, window, absent);
  const Json& types = map.value("layer_types");
  const bool listed = !types.is_null();
  if (listed && (!types.is_array() || types.size() != stack.layers.size())) {
    map.problem("layer_types", "is not a list of " + std::to_string(stack.layers.size()) + " names",
                "give one name a layer");
    return;
  }
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    if (listed && types[i] != kSliding && types[i] != kFull)
      map.problem("layer_types[" + std::to_string(i) + "]", types[i].dump() + " is not supported",
                  "supported are full_attention and sliding_attention");
    const bool slide = listed ? types[i] == kSliding : slides(i);
    if (slide) {
      window_of(stack.layers[i]) = window;
    } else if (full) {
      full(stack.layers[i]);
    }
  }
}

std::function<bool(size_t)> all_but_every(ConfigMap& map, int64_t fallback) {
  int64_t period = fallback;
  if (map.reading()) {
    map(map.has("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern", period, fallback);
    if (period < 1) map.problem("sliding_window_pattern", "is below 1"), period = 1;
    map.ignore({"_sliding_window_pattern", "sliding_window_pattern"});
  }
  return [period](size_t i) { return (i + 1) % static_cast<size_t>(period) != 0; };
}

const LayerSpec& sparse_layer(const ConfigMap& map, const StackSpec& stack, const LayerSpec& layer) {
  if (map.reading()) return layer;
  for (const LayerSpec& l : stack.layers) {
    if (l.moe) return l;
  }
  throw Inexpressible{"no layer has experts"};
}

void map_num_experts(ConfigMap& map, int64_t& experts, const char* key, const char* other, int64_t fallback) {
  if (map.reading() && !map.has(key) && map.has(other)) key = other;
  map(key, experts, fallback);
}

void map_first_dense(ConfigMap& map, StackSpec& stack, int64_t fallback) {
  int64_t dense = 0;
  while (static_cast<size_t>(dense) < stack.layers.size() && !stack.layers[static_cast<size_t>(dense)].moe) ++dense;
  map("first_k_dense_replace", dense, fallback);
  if (!map.reading()) return;
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    if (static_cast<int64_t>(i) < dense) stack.layers[i].moe = {};
  }
}

void map_dense_layers(ConfigMap& map, StackSpec& stack) {
  if (!map.reading()) {
    Json dense = Json::array();
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      if (!stack.layers[i].moe) dense.push_back(i);
    }
    map.write("decoder_sparse_step", 1);
    return map.write("mlp_only_layers", dense);
  }
  int64_t step = 1;
  map("decoder_sparse_step", step, 1);
  if (step < 1) {
    map.problem("decoder_sparse_step", std::to_string(step) + " is out of range", "allowed is 1 or more");
    step = 1;
  }
  const Json& listed = map.value("mlp_only_layers");
  if (!listed.is_null() && !listed.is_array())
    map.problem("mlp_only_layers", "is " + listed.dump() + ", not a list of layers");
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const bool only = listed.is_array() && std::find(listed.begin(), listed.end(), Json(i)) != listed.end();
    if (only || (i + 1) % static_cast<size_t>(step) != 0) stack.layers[i].moe = {};
  }
}

}  // namespace transept
