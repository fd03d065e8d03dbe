// gpt-oss (arXiv:2508.10925): experts with biases and a clamped SwiGLU, a learned logit a head beside the scores, and
// windows on every other layer.
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

void gpt_oss(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", 131072);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention, 8, 64);
  map_attention_bias(map, attention, true);
  RopePosition& rope = map_position<RopePosition>(map, layer);
  map_rope(map, rope, spec.max_position_embeddings, {.theta = 150000});
  if (map.reading() && map.value("rope_parameters").is_null() && map.value("rope_scaling").is_null()) {
    rope.scaling = YarnScaling{.factor = 32, .original_max_position_embeddings = 4096, .truncate = false};
  }
  map("intermediate_size", layer.ffn.intermediate_size, 2880);
  map.require("hidden_act", "silu", "the activation is another one");
  map.require("swiglu_alpha", 1.702, "the gate is made otherwise");
  map.require("swiglu_limit", 7.0, "the gate is made otherwise");
  MoeSpec& moe = layer.moe;
  map.demand(static_cast<bool>(moe), "a layer has no experts");
  map_num_experts(map, moe.num_experts, "num_local_experts", "num_experts", 128);
  map("num_experts_per_tok", moe.num_experts_per_tok, 4);
  map.require("experts_per_token", moe.num_experts_per_tok, "it is not num_experts_per_tok");
  map("router_aux_loss_coef", moe.router_aux_loss_coef, 0.001);
  map.ignore({"attention_dropout", "initial_context_length", "output_router_logits"});
  if (map.reading()) {
    attention.sinks = true;
    layer.ffn.kind = FfnKind::kSwigluClamped;
    layer.ffn.bias = moe.router_bias = true;
    moe.scoring_func = ScoringFunc::kSoftmaxOfChosen;
  }
  map.layers("num_hidden_layers", spec, layer, 36);
  map.require("layer_pattern", "LG", "layers with a window and without one do not take turns");
  map_layer_windows(map, spec, 128, [](size_t i) { return i % 2 == 0; });
}

NameTable gpt_oss_names(const ArchSpec&) {
  return with_base(
      {{"layers.#.attention.sinks", "model.layers.#.self_attn.sinks"},
       {"layers.#.ffn.router.*", "model.layers.#.mlp.router.*"},
       {"layers.#.ffn.experts.gate_up.weight", "model.layers.#.mlp.experts.gate_up_proj", Layout::kAlternatingExperts},
       {"layers.#.ffn.experts.gate_up.bias", "model.layers.#.mlp.experts.gate_up_proj_bias",
        Layout::kAlternatingExperts},
       {"layers.#.ffn.experts.down.weight", "model.layers.#.mlp.experts.down_proj", Layout::kExperts},
       {"layers.#.ffn.experts.down.bias", "model.layers.#.mlp.experts.down_proj_bias", Layout::kExperts}},
      llama_names());
}

}  // namespace

const Family kGptOssFamily{.model_type = "gpt_oss",
                           .architecture = "GptOssForCausalLM",
                           .config = gpt_oss,
                           .names = gpt_oss_names,
                           .base_prefix = "model."};

}  // namespace transept
