// DBRX (Databricks, 2024): rotary positions, queries, keys and values held between bounds, LayerNorm without biases,
// and experts whose chosen weights are divided by their sum.
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

void dbrx_experts(ConfigMap& in, const ArchSpec& spec, LayerSpec& layer) {
  MoeSpec& moe = layer.moe;
  in("ffn_hidden_size", layer.ffn.intermediate_size, 3584);
  in("moe_num_experts", moe.num_experts, 4);
  in("moe_top_k", moe.num_experts_per_tok, 1);
  in("moe_loss_weight", moe.router_aux_loss_coef, 0.01);
  in.group("ffn_act_fn", [&](ConfigMap& act) { act.choice("name", layer.ffn.kind, gated_activations(), "silu"); });
  constexpr const char *kJitter = "moe_jitter_eps", *kNorm = "moe_normalize_expert_weights";
  if (!in.reading()) {
    in.write(kJitter, moe.router_jitter_noise > 0 ? Json(moe.router_jitter_noise) : Json());
    return in.write(kNorm, moe.norm_topk_prob ? Json(1.0) : Json());
  }
  in(kJitter, moe.router_jitter_noise, 0.0);
  moe.norm_topk_prob = !in.has(kNorm) || !in.value(kNorm).is_null();
  in.require(kNorm, 1.0, "weights of the chosen experts are divided by another norm than their sum");
  in.require("hidden_size", spec.hidden_size, "experts have another width than layers");
  in.require("uniform_expert_assignment", false, "tokens do not choose their experts");
}

// Tables of models write the keys of both groups beside the others.
void dbrx_flat(ConfigMap& map, LayerSpec& layer) {
  GqaSpec& attention = std::get<GqaSpec>(layer.attention);
  const auto flat = [&](const char* key, int64_t& value) {
    if (map.has(key)) map(key, value);
  };
  flat("kv_n_heads", attention.num_key_value_heads);
  flat("ffn_hidden_size", layer.ffn.intermediate_size);
  flat("moe_num_experts", layer.moe.num_experts);
  flat("moe_top_k", layer.moe.num_experts_per_tok);
  if (map.has("clip_qkv")) map_clip(map, attention);
}

void dbrx(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map("vocab_size", spec.vocab_size, 32000);
  map("d_model", spec.hidden_size, 2048);
  map_max_positions(map, spec, "max_seq_len", 2048);
  map("tie_word_embeddings", spec.tie_word_embeddings, false);
  map("initializer_range", spec.initializer_range, 0.02);
  map("resid_pdrop", spec.dropout, 0.0);
  LayerNormSpec& norm = map.kind<LayerNormSpec>(layer.norm, "norm");
  if (map.reading()) norm = {.eps = 1e-5, .bias = false};
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("n_heads", attention.num_attention_heads, 16);
  RopePosition& rope = map_position<RopePosition>(map, layer);
  RopeDefaults defaults;
  map.group("attn_config", [&](ConfigMap& in) {
    in("kv_n_heads", attention.num_key_value_heads, 1);
    map_clip(in, attention);
    if (!in.reading()) return in.write("rope_theta", rope.theta);
    in("rope_theta", defaults.theta, defaults.theta);
    in.ignore({"attn_pdrop"});
  });
  map.require("num_key_value_heads", attention.num_key_value_heads, "it is not attn_config.kv_n_heads");
  map_rope(map, rope, spec.max_position_embeddings, defaults);
  map.demand(static_cast<bool>(layer.moe), "a layer has no experts");
  map.group("ffn_config", [&](ConfigMap& in) { dbrx_experts(in, spec, layer); });
  dbrx_flat(map, layer);
  map.ignore({"emb_pdrop", "output_router_logits", "router_aux_loss_coef"});
  map.layers("n_layers", spec, layer, 24);
}

NameTable dbrx_names(const ArchSpec&) {
  return {
      {"embedding.weight", "transformer.wte.weight"},
      {"layers.#.attention.qkv.weight", "transformer.blocks.#.norm_attn_norm.attn.Wqkv.weight"},
      {"layers.#.attention.output.weight", "transformer.blocks.#.norm_attn_norm.attn.out_proj.weight"},
      {"layers.#.attention_norm.weight", "transformer.blocks.#.norm_attn_norm.norm_1.weight"},
      {"layers.#.ffn_norm.weight", "transformer.blocks.#.norm_attn_norm.norm_2.weight"},
      {"layers.#.ffn.router.weight", "transformer.blocks.#.ffn.router.layer.weight"},
      {"layers.#.ffn.experts.gate_up.weight",
       "transformer.blocks.#.ffn.experts.mlp.w1 transformer.blocks.#.ffn.experts.mlp.v1", Layout::kExpertRows},
      {"layers.#.ffn.experts.down.weight", "transformer.blocks.#.ffn.experts.mlp.w2", Layout::kExpertColumns},
      {"final_norm.weight", "transformer.norm_f.weight"},
      {"head.weight", "lm_head.weight"},
  };
}

}  // namespace

const Family kDbrxFamily{.model_type = "dbrx",
                         .architecture = "DbrxForCausalLM",
                         .config = dbrx,
                         .names = dbrx_names,
                         .base_prefix = "transformer.",
                         .ignorable = frequency_table};

}  // namespace transept
