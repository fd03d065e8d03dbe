// The parameter list of a whole model: the embeddings, each stack's layers, the head.
#include "spec/arch_spec.h"

namespace transept {
namespace {

void declare_norm(const NormSpec& norm, const std::string& prefix, int64_t layer, int64_t width, ParamList& p) {
  p.scope(prefix, Part::kNorm, layer);
  std::visit([&](const auto& kind) { kind.declare(width, p); }, norm);
}

void declare_layer(const LayerSpec& layer, const std::string& prefix, int64_t index, int64_t width, ParamList& p) {
  const bool sandwich = layer.placement == NormPlacement::kSandwich;
  const auto sublayer = [&](const std::string& name, Part part, const auto& declare, bool norm = true) {
    if (norm) declare_norm(layer.norm, prefix + name + "_norm.", index, width, p);
    p.scope(prefix + name + ".", part, index);
    declare();
    if (sandwich) declare_norm(layer.norm, prefix + name + "_post_norm.", index, width, p);
  };
  sublayer("attention", Part::kAttention, [&] {
    std::visit([&](const auto& kind) { kind.declare(width, norm_unit(layer.norm), p); }, layer.attention);
  });
  if (layer.cross_attention) {
    sublayer("cross_attention", Part::kCrossAttention, [&] {
      std::visit(
          [&]<class K>(const K& kind) {
            if constexpr (K::kCross) kind.declare_cross(width, norm_unit(layer.norm), p);
          },
          layer.attention);
    });
  }
  const auto declare_ffn = [&] {
    if (layer.moe) {
      layer.moe.declare(layer.ffn, width, p);
    } else {
      layer.ffn.declare(width, p);
    }
  };
  sublayer("ffn", Part::kFfn, declare_ffn, layer.block.form != BlockForm::kParallel);
}

// The stack's own parameters; `prefix` is "" or "encoder.".
void declare_stack(const ArchSpec& spec, const StackSpec& stack, const std::string& prefix, ParamList& p) {
  p.scope(prefix + "position.", Part::kPosition);
  // A kind that keeps numbers by head has as many heads in every layer.
  const int64_t heads = stack.layers.empty() ? 0
                                             : std::visit([](const auto& a) { return a.num_attention_heads; },
                                                          stack.layers.front().attention);
  std::visit([&](const auto& kind) { kind.declare(spec.hidden_size, spec.max_position_embeddings, heads, p); },
             stack.position);
  if (spec.embedding_norm) declare_norm(stack.final_norm, prefix + "embedding_norm.", -1, spec.hidden_size, p);
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    declare_layer(stack.layers[i], prefix + "layers." + std::to_string(i) + ".", static_cast<int64_t>(i),
                  spec.hidden_size, p);
  }
  if (stack.has_final_norm()) declare_norm(stack.final_norm, prefix + "final_norm.", -1, spec.hidden_size, p);
}

}  // namespace

ParamList ArchSpec::declare() const {
  ParamList p;
  p.scope("embedding.", Part::kEmbedding);
  p.add("weight", {vocab_size, hidden_size}, Init::kNormal, {.shard = Shard::kRows});
  p.scope("token_type.", Part::kPosition);
  if (type_vocab_size > 0) p.add("weight", {type_vocab_size, hidden_size}, Init::kNormal);
  if (encoder_decoder()) {
    p.set_encoder(true);
    declare_stack(*this, encoder, "encoder.", p);
    p.set_encoder(false);
  }
  declare_stack(*this, *this, "", p);
  if (head_transform) {
    p.scope("head_transform.", Part::kHead);
    p.add("weight", {hidden_size, hidden_size}, Init::kNormal);
    p.add("bias", {hidden_size}, Init::kZeros);
    declare_norm(final_norm, "head_norm.", -1, hidden_size, p);
  }
  p.scope("head.", Part::kHead);
  if (!tie_word_embeddings) p.add("weight", {vocab_size, hidden_size}, Init::kNormal, {.shard = Shard::kRows});
  if (head_bias) p.add("bias", {vocab_size}, Init::kZeros, {.shard = Shard::kRows});
  if (pooler) {
    p.scope("pooler.", Part::kPooler);
    p.add("weight", {hidden_size, hidden_size}, Init::kNormal);
    p.add("bias", {hidden_size}, Init::kZeros);
  }
  return p;
}

}  // namespace transept
