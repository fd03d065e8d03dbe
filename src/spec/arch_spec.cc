// The parameter list of a whole model: the embeddings, each layer's kinds, the final norm, the head.
#include "spec/arch_spec.h"

namespace transept {

ParamList ArchSpec::declare() const {
  ParamList p;
  p.scope("embedding.", Part::kEmbedding);
  p.add("weight", {vocab_size, hidden_size}, Init::kNormal);
  p.scope("position.", Part::kPosition);
  // A kind that keeps numbers by head has as many heads in every layer.
  const int64_t heads =
      layers.empty() ? 0 : std::visit([](const auto& a) { return a.num_attention_heads; }, layers.front().attention);
  std::visit([&](const auto& kind) { kind.declare(hidden_size, max_position_embeddings, heads, p); }, position);
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    const int64_t index = static_cast<int64_t>(i);
    p.scope(prefix + "attention_norm.", Part::kNorm, index);
    std::visit([&](const auto& kind) { kind.declare(hidden_size, p); }, layer.norm);
    p.scope(prefix + "attention.", Part::kAttention, index);
    std::visit([&](const auto& kind) { kind.declare(hidden_size, p); }, layer.attention);
    p.scope(prefix + "ffn_norm.", Part::kNorm, index);
    std::visit([&](const auto& kind) { kind.declare(hidden_size, p); }, layer.norm);
    p.scope(prefix + "ffn.", Part::kFfn, index);
    layer.ffn.declare(hidden_size, p);
  }
  if (has_final_norm()) {
    p.scope("final_norm.", Part::kNorm);
    std::visit([&](const auto& kind) { kind.declare(hidden_size, p); }, final_norm);
  }
  if (!tie_word_embeddings) {
    p.scope("head.", Part::kHead);
    p.add("weight", {vocab_size, hidden_size}, Init::kNormal);
  }
  return p;
}

}  // namespace transept
