// LLaMA (arXiv:2302.13971, 2307.09288, 2407.21783), Mistral (arXiv:2310.06825) and Mixtral (arXiv:2401.04088): pre-norm
// RMSNorm, rotary positions in half-split pairing, grouped-query attention, SwiGLU; Mistral adds a sliding window,
// Mixtral experts.
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {

const NameTable& llama_names() {
  static const NameTable all{
      {"embedding.weight", "model.embed_tokens.weight"},
      {"layers.#.attention.qkv.*",
       "model.layers.#.self_attn.q_proj.* model.layers.#.self_attn.k_proj.* model.layers.#.self_attn.v_proj.*"},
      {"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_norm.weight"},
      {"layers.#.attention.k_norm.weight", "model.layers.#.self_attn.k_norm.weight"},
      {"layers.#.attention.output.*", "model.layers.#.self_attn.o_proj.*"},
      {"layers.#.attention_norm.weight", "model.layers.#.input_layernorm.weight"},
      {"layers.#.ffn_norm.weight", "model.layers.#.post_attention_layernorm.weight"},
      {"layers.#.ffn.gate_up.*", "model.layers.#.mlp.gate_proj.* model.layers.#.mlp.up_proj.*"},
      {"layers.#.ffn.down.*", "model.layers.#.mlp.down_proj.*"},
      {"final_norm.weight", "model.norm.weight"},
      {"head.weight", "lm_head.weight"},
  };
  return all;
}

const NameTable& expert_names() {
  static const NameTable all =
      with_base({{"layers.#.ffn.router.weight", "model.layers.#.mlp.gate.weight"},
                 {"layers.#.ffn.router.selection_bias", "model.layers.#.mlp.gate.e_score_correction_bias"},
                 {"layers.#.ffn.experts.gate_up.weight",
                  "model.layers.#.mlp.experts.@.gate_proj.weight model.layers.#.mlp.experts.@.up_proj.weight"},
                 {"layers.#.ffn.experts.down.weight", "model.layers.#.mlp.experts.@.down_proj.weight"}},
                llama_names());
  return all;
}

const NameTable& shared_expert_names() {
  static const NameTable all = with_base(
      {{"layers.#.ffn.shared_expert.gate_up.weight",
        "model.layers.#.mlp.shared_experts.gate_proj.weight model.layers.#.mlp.shared_experts.up_proj.weight"},
       {"layers.#.ffn.shared_expert.down.weight", "model.layers.#.mlp.shared_experts.down_proj.weight"}},
      expert_names());
  return all;
}

NameTable names_as_llama(const ArchSpec&) { return llama_names(); }

// Tables that old checkpoints store beside the weights.
bool frequency_table(const ArchSpec&, const std::string& name) { return name.ends_with("rotary_emb.inv_freq"); }

namespace {

void llama(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", 2048);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", 1e-6);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention);
  map_attention_bias(map, attention);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, gated_activations(), "silu");
  map("mlp_bias", layer.ffn.bias, false);
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  map.ignore({"attention_dropout", "pretraining_tp"});  // acts in training only; a way to compute the same products
  map.layers("num_hidden_layers", spec, layer);
}

void mistral_layer(ConfigMap& map, ArchSpec& spec, LayerSpec& layer, double eps, const RopeDefaults& rope,
                   int64_t window) {
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", 131072);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", eps);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention, 8);
  map_window(map, attention.sliding_window, window);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, gated_activations(), "silu");
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings, rope);
  map.ignore({"attention_dropout"});
}

void mistral(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  mistral_layer(map, spec, layer, 1e-6, {}, 4096);
  map.layers("num_hidden_layers", spec, layer);
}

void mixtral(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  mistral_layer(map, spec, layer, 1e-5, {.theta = 1e6}, 0);
  MoeSpec& moe = layer.moe;
  map.demand(static_cast<bool>(moe), "a layer has no experts");
  map("num_local_experts", moe.num_experts, 8);
  map("num_experts_per_tok", moe.num_experts_per_tok, 2);
  map("router_aux_loss_coef", moe.router_aux_loss_coef, 0.001);
  map("router_jitter_noise", moe.router_jitter_noise, 0.0);
  map.ignore({"output_router_logits"});
  if (map.reading()) moe.scoring_func = ScoringFunc::kSoftmaxOfChosen;
  map.layers("num_hidden_layers", spec, layer);
}

NameTable mixtral_names(const ArchSpec&) {
  return with_base(
      {{"layers.#.ffn.router.weight", "model.layers.#.block_sparse_moe.gate.weight"},
       {"layers.#.ffn.experts.gate_up.weight",
        "model.layers.#.block_sparse_moe.experts.@.w1.weight model.layers.#.block_sparse_moe.experts.@.w3.weight"},
       {"layers.#.ffn.experts.down.weight", "model.layers.#.block_sparse_moe.experts.@.w2.weight"}},
      llama_names());
}

}  // namespace

const Family kLlamaFamily{.model_type = "llama",
                          .architecture = "LlamaForCausalLM",
                          .config = llama,
                          .names = names_as_llama,
                          .base_prefix = "model.",
                          .ignorable = frequency_table};
const Family kMistralFamily{.model_type = "mistral",
                            .architecture = "MistralForCausalLM",
                            .config = mistral,
                            .names = names_as_llama,
                            .base_prefix = "model.",
                            .ignorable = frequency_table};
const Family kMixtralFamily{.model_type = "mixtral",
                            .architecture = "MixtralForCausalLM",
                            .config = mixtral,
                            .names = mixtral_names,
                            .base_prefix = "model.",
                            .ignorable = frequency_table};

}  // namespace transept
