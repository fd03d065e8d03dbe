// OLMo (arXiv:2402.00838: LayerNorm without parameters), OLMo 2 (arXiv:2501.00656: norms behind the sublayers, and of
// all heads' queries and keys together) and OLMoE (arXiv:2409.02060: experts).
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

void olmo_layer(ConfigMap& map, ArchSpec& spec, LayerSpec& layer, int64_t max_positions) {
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", max_positions);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention);
  map_attention_bias(map, attention);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, gated_activations(), "silu");
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  map.ignore({"attention_dropout"});
}

void norm_all_heads(ConfigMap& map, LayerSpec& layer) {
  if (!map.reading()) return;
  GqaSpec& attention = std::get<GqaSpec>(layer.attention);
  attention.qk_norm = QkNorm::kRmsnorm;
  attention.qk_norm_scope = QkNormScope::kAllHeads;
}

void olmo(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  olmo_layer(map, spec, layer, 2048);
  LayerNormSpec& norm = map.kind<LayerNormSpec>(layer.norm, "norm");
  if (map.reading()) norm = {.eps = 1e-5, .bias = false, .elementwise_affine = false};
  map.require("norm", "non-parametric LayerNorm", "the norm is another one");
  map_clip(map, std::get<GqaSpec>(layer.attention));
  map.layers("num_hidden_layers", spec, layer);
}

void olmo2(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  olmo_layer(map, spec, layer, 2048);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", 1e-5);
  norm_all_heads(map, layer);
  if (map.reading()) layer.placement = NormPlacement::kPostSublayer;
  map.layers("num_hidden_layers", spec, layer);
}

void olmoe(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  olmo_layer(map, spec, layer, 4096);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", 1e-5);
  norm_all_heads(map, layer);
  map.require("clip_qkv", nullptr, "queries, keys and values are clipped behind their norm");
  MoeSpec& moe = layer.moe;
  map.demand(static_cast<bool>(moe), "a layer has no experts");
  map_num_experts(map, moe.num_experts, "num_experts", "num_local_experts", 64);
  map("num_experts_per_tok", moe.num_experts_per_tok, 8);
  map("norm_topk_prob", moe.norm_topk_prob, false);
  map("router_aux_loss_coef", moe.router_aux_loss_coef, 0.01);
  map.ignore({"output_router_logits"});
  map.layers("num_hidden_layers", spec, layer);
}

NameTable olmo2_names(const ArchSpec&) {
  return with_base({{"layers.#.attention_norm.weight", "model.layers.#.post_attention_layernorm.weight"},
                    {"layers.#.ffn_norm.weight", "model.layers.#.post_feedforward_layernorm.weight"}},
                   llama_names());
}

NameTable olmoe_names(const ArchSpec&) { return expert_names(); }

}  // namespace

const Family kOlmoFamily{.model_type = "olmo",
                         .architecture = "OlmoForCausalLM",
                         .config = olmo,
                         .names = names_as_llama,
                         .base_prefix = "model."};
const Family kOlmo2Family{.model_type = "olmo2",
                          .architecture = "Olmo2ForCausalLM",
                          .config = olmo2,
                          .names = olmo2_names,
                          .base_prefix = "model."};
const Family kOlmoeFamily{.model_type = "olmoe",
                          .architecture = "OlmoeForCausalLM",
                          .config = olmoe,
                          .names = olmoe_names,
                          .base_prefix = "model."};

}  // namespace transept
