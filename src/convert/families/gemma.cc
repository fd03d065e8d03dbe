// Gemma (arXiv:2403.08295), Gemma 2 (arXiv:2408.00118) and the text models of Gemma 3 (arXiv:2503.19786): embeddings
// scaled by sqrt(hidden_size), RMSNorm by 1 + weight, GeGLU; from 2 on norms on either side of a sublayer and windows
// in some layers; in 3 a rotary table for either kind of layer.
#include <cmath>

#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

constexpr RmsNormSpec kUnitOffset{.unit_offset = true};

// hidden_activation, or hidden_act where that is null, as the first configs have it.
void map_activation(ConfigMap& map, FfnKind& kind, const char* key, const char* other) {
  if (map.reading() && map.value(key).is_null()) key = other;
  map.choice(key, kind, gated_activations(), "gelu_pytorch_tanh");
  map.ignore({other});
}

void gemma_model(ConfigMap& map, ArchSpec& spec, int64_t max_positions) {
  map_model(map, spec, true);
  map_max_positions(map, spec, "max_position_embeddings", max_positions);
  map.ignore({"attention_dropout"});
  map.require("use_bidirectional_attention", false, "tokens would see later ones");
  if (map.reading()) spec.scale_embedding = true;
}

void gemma(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  gemma_model(map, spec, 8192);
  map_norm(map, layer, "rms_norm_eps", 1e-6, kUnitOffset);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention, 16, 256);
  map_attention_bias(map, attention);
  map("intermediate_size", layer.ffn.intermediate_size);
  map_activation(map, layer.ffn.kind, map.reading() ? "hidden_activation" : "hidden_act",
                 map.reading() ? "hidden_act" : "hidden_activation");
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  map.layers("num_hidden_layers", spec, layer);
}

void map_cap(ConfigMap& map, const char* key, double& cap, double absent) {
  if (!map.reading()) return map.write(key, cap > 0 ? Json(cap) : Json());
  map(key, cap, map.has(key) ? 0 : absent);
}

// Gemma 2 and 3 without their positions and windows.
void sandwich_layer(ConfigMap& map, ArchSpec& spec, LayerSpec& layer, double score_cap, double final_cap) {
  map_norm(map, layer, "rms_norm_eps", 1e-6, kUnitOffset);
  if (map.reading()) layer.placement = NormPlacement::kSandwich;
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("num_attention_heads", attention.num_attention_heads, 8);
  map("num_key_value_heads", attention.num_key_value_heads, 4);
  map("head_dim", attention.head_dim, 256);
  map_attention_bias(map, attention);
  // Scores are divided by its square root.
  double scalar = std::round(1 / (attention.score_scale() * attention.score_scale()));
  if (map.reading()) {
    map("query_pre_attn_scalar", scalar, 256.0);
    if (!(scalar > 0)) map.problem("query_pre_attn_scalar", "is not above 0");
    attention.scale = scalar == static_cast<double>(attention.head_dim) ? 0 : 1 / std::sqrt(scalar);
  } else {
    map.write("query_pre_attn_scalar", static_cast<int64_t>(scalar));
  }
  map_cap(map, "attn_logit_softcapping", attention.logit_softcap, score_cap);
  map_cap(map, "final_logit_softcapping", spec.final_logit_softcap, final_cap);
  map("intermediate_size", layer.ffn.intermediate_size, 9216);
  map_activation(map, layer.ffn.kind, "hidden_activation", "hidden_act");
}

void gemma2(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  gemma_model(map, spec, 8192);
  sandwich_layer(map, spec, layer, 50, 30);
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  map.layers("num_hidden_layers", spec, layer);
  map.ignore({"cache_implementation"});
  map.require("layer_pattern", "LG", "layers with a window and without one do not take turns");
  map_layer_windows(map, spec, 4096, [](size_t i) { return i % 2 == 0; });
}

// Layers with a window have a table of their own; a rule stretches the others alone.
void map_two_ropes(ConfigMap& map, RopePosition& sliding, RopePosition& full, int64_t trained) {
  if (!map.reading()) {
    map.write("rope_parameters", {{"sliding_attention", rope_block(sliding)}, {"full_attention", rope_block(full)}});
    map.write("rope_theta", full.theta);
    map.write("rope_local_base_freq", sliding.theta);
    return;
  }
  map("rope_theta", full.theta, 1e6);
  map("rope_local_base_freq", sliding.theta, 1e4);
  if (const Json& old = map.value("rope_scaling"); !old.is_null())
    read_rope_block(map, "rope_scaling", old, full, trained);
  const Json& both = map.value("rope_parameters");
  if (both.is_null()) return;
  if (!both.is_object()) return map.problem("rope_parameters", "is " + both.dump() + ", not an object");
  for (const auto& [key, block] : both.items()) {
    if (block.is_null()) continue;
    if (key != "sliding_attention" && key != "full_attention") {
      map.problem("rope_parameters." + key, "is not understood and might change the numbers");
      continue;
    }
    read_rope_block(map, "rope_parameters." + key, block, key == "full_attention" ? full : sliding, trained);
  }
}

void gemma3(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  gemma_model(map, spec, 131072);
  sandwich_layer(map, spec, layer, 0, 0);
  if (map.reading()) std::get<GqaSpec>(layer.attention).qk_norm = QkNorm::kRmsnorm;
  RopePosition sliding, full;
  for (LayerSpec& l : spec.layers) {
    const auto* rope = std::get_if<RopePosition>(&l.position);
    map.demand(rope, "position is not rope");
    (window_of(l) > 0 ? sliding : full) = *rope;
  }
  map_two_ropes(map, sliding, full, spec.max_position_embeddings);
  layer.position = sliding;
  map.layers("num_hidden_layers", spec, layer, 26);
  map.ignore({"cache_implementation"});
  map_layer_windows(map, spec, 4096, all_but_every(map, 6), [&](LayerSpec& l) { l.position = full; });
}

NameTable sandwich_names(const ArchSpec&) {
  return with_base({{"layers.#.attention_post_norm.weight", "model.layers.#.post_attention_layernorm.weight"},
                    {"layers.#.ffn_norm.weight", "model.layers.#.pre_feedforward_layernorm.weight"},
                    {"layers.#.ffn_post_norm.weight", "model.layers.#.post_feedforward_layernorm.weight"}},
                   llama_names());
}

}  // namespace

const Family kGemmaFamily{.model_type = "gemma",
                          .architecture = "GemmaForCausalLM",
                          .config = gemma,
                          .names = names_as_llama,
                          .base_prefix = "model.",
                          .ignorable = frequency_table};
const Family kGemma2Family{.model_type = "gemma2",
                           .architecture = "Gemma2ForCausalLM",
                           .config = gemma2,
                           .names = sandwich_names,
                           .base_prefix = "model."};
const Family kGemma3Family{.model_type = "gemma3_text",
                           .architecture = "Gemma3ForCausalLM",
                           .config = gemma3,
                           .names = sandwich_names,
                           .base_prefix = "model."};

}  // namespace transept
