#include "plan/architecture.h"

#include <algorithm>

#include "plan/parameters.h"

namespace transept {
namespace {

template <class E>
std::string name_of(E value) {
  return std::string(EnumNames<E>::kNames[static_cast<size_t>(value)]);
}

std::string position_of(const ArchSpec& spec, const LayerSpec& layer) {
  const bool inside = !std::holds_alternative<NoPosition>(layer.position);
  const PositionSpec& position = inside ? layer.position : spec.position;
  std::string text(kind_name(position));
  if (const auto* rope = std::get_if<RopePosition>(&position);
      rope && !std::holds_alternative<NoScaling>(rope->scaling))
    text += ", " + std::string(kind_name(rope->scaling));
  return text;
}

void describe(const GqaSpec& a, Architecture& out) {
  out.kv_heads = a.num_key_value_heads;
  out.head_dim = a.head_dim;
  out.attention = a.num_key_value_heads == a.num_attention_heads ? "MHA" : a.num_key_value_heads == 1 ? "MQA" : "GQA";
}
void describe(const MlaSpec& a, Architecture& out) {
  out.kv_heads = a.num_attention_heads;
  out.head_dim = a.query_dim();
  out.attention = "MLA";
}

}  // namespace

Architecture describe_architecture(const ArchSpec& spec) {
  Architecture out;
  out.topology = name_of(spec.topology);
  out.layers = static_cast<int64_t>(spec.layers.size());
  out.encoder_layers = static_cast<int64_t>(spec.encoder.layers.size());
  out.hidden_size = spec.hidden_size;
  out.vocab_size = spec.vocab_size;
  out.context = spec.max_position_embeddings;
  out.tied = spec.tie_word_embeddings;

  const LayerSpec& layer = spec.layers.back();
  out.heads = std::visit([](const auto& a) { return a.num_attention_heads; }, layer.attention);
  std::visit([&](const auto& a) { describe(a, out); }, layer.attention);
  out.position = position_of(spec, layer);
  out.norm = std::string(kind_name(layer.norm)) + ", " + name_of(layer.placement);
  out.block = name_of(layer.block.form);
  out.ffn = name_of(layer.ffn.kind);
  out.intermediate_size = layer.moe ? layer.moe.moe_intermediate_size : layer.ffn.intermediate_size;
  out.experts = layer.moe.num_experts;
  if (layer.moe) {
    out.experts_per_token = layer.moe.num_experts_per_tok;
    out.shared_expert_size = layer.moe.shared_expert_intermediate_size;
  }
  for (const LayerSpec& l : spec.layers) {
    if (const int64_t window = window_of(l); window > 0) {
      ++out.windowed_layers;
      out.sliding_window = std::max(out.sliding_window, window);
    }
    out.dense_layers += out.experts > 0 && !l.moe;
  }
  return out;
}

}  // namespace transept
