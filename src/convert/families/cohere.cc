// Command R and R+ (Cohere) and Command R7B (Cohere2): attention and feed-forward read one LayerNorm without bias,
// rotary positions in interleaved pairing, a factor on the logits. Cohere2 has windows, and layers without a window
// have no positions at all.
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

void cohere_layer(ConfigMap& map, ArchSpec& spec, LayerSpec& layer, int64_t head_dim) {
  map_model(map, spec, true);
  map_max_positions(map, spec, "max_position_embeddings", 8192);
  map_norm(map, layer, "layer_norm_eps", 1e-5, LayerNormSpec{.bias = false});
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention, std::nullopt, head_dim);
  map_attention_bias(map, attention);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, gated_activations(), "silu");
  map("logit_scale", spec.logit_scale, 0.0625);
  map.require("parallel_block", true, "the feed-forward sublayer reads what attention left");
  map.ignore({"attention_dropout"});
  if (map.reading()) layer.block.form = BlockForm::kParallel;
}

void cohere(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  cohere_layer(map, spec, layer, 0);
  GqaSpec& attention = std::get<GqaSpec>(layer.attention);
  bool normed = attention.qk_norm == QkNorm::kLayernorm;
  map("use_qk_norm", normed, false);
  if (map.reading() && normed) {
    attention.qk_norm = QkNorm::kLayernorm;
    attention.qk_norm_scope = QkNormScope::kEachHead;
  }
  RopePosition& rope = map_position<RopePosition>(map, layer);
  map_rope(map, rope, spec.max_position_embeddings, {.theta = 500000});
  if (map.reading()) rope.pairing = RopePairing::kInterleaved;
  map.layers("num_hidden_layers", spec, layer);
}

void cohere2(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  cohere_layer(map, spec, layer, 128);
  RopePosition rope;
  for (const LayerSpec& l : spec.layers) {
    if (const auto* own = std::get_if<RopePosition>(&l.position)) rope = *own;
  }
  map_rope(map, rope, spec.max_position_embeddings);
  if (map.reading()) {
    rope.pairing = RopePairing::kInterleaved;
    layer.position = rope;
  }
  map.layers("num_hidden_layers", spec, layer);
  map.ignore({"cache_implementation", "order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
              "use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding"});
  map.require("use_qk_norm", false, "queries and keys are normalized");
  map_layer_windows(map, spec, 4096, all_but_every(map, 4), [](LayerSpec& l) { l.position = NoPosition{}; });
}

NameTable names(const ArchSpec&) {
  return with_base({{"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_norm.weight", Layout::kByHead},
                    {"layers.#.attention.k_norm.weight", "model.layers.#.self_attn.k_norm.weight", Layout::kByHead}},
                   llama_names());
}

}  // namespace

const Family kCohereFamily{.model_type = "cohere",
                           .architecture = "CohereForCausalLM",
                           .config = cohere,
                           .names = names,
                           .base_prefix = "model."};
const Family kCohere2Family{.model_type = "cohere2",
                            .architecture = "Cohere2ForCausalLM",
                            .config = cohere2,
                            .names = names,
                            .base_prefix = "model."};

}  // namespace transept
