// Phi-2 (partial rotary positions, attention and feed-forward in parallel, biases everywhere) and Phi-3
// (arXiv:2404.14219: LLaMA's form with fused projections, and LongRoPE for long contexts).
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

void phi(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", 2048);
  map_norm<LayerNormSpec>(map, layer, "layer_norm_eps", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention);
  map("intermediate_size", layer.ffn.intermediate_size, 8192);
  map.choice("hidden_act", layer.ffn.kind, plain_activations(), "gelu_new");
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings, {.partial_rotary_factor = 0.5});
  map("resid_pdrop", spec.dropout, 0.0);
  map.require("qk_layernorm", false, "queries and keys are normalized");
  map.ignore({"attention_dropout", "embd_pdrop"});
  if (map.reading()) {
    attention.qkv_bias = attention.output_bias = layer.ffn.bias = spec.head_bias = true;
    layer.block.form = BlockForm::kParallel;
  }
  map.layers("num_hidden_layers", spec, layer);
}

void phi3(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", 4096);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention);
  map_window(map, attention.sliding_window, 0);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, gated_activations(), "silu");
  RopePosition& rope = map_position<RopePosition>(map, layer);
  int64_t trained = 4096;
  if (const auto* rule = std::get_if<LongRopeScaling>(&rope.scaling)) trained = rule->original_max_position_embeddings;
  map("original_max_position_embeddings", trained, 4096);
  map_rope(map, rope, trained, {.partial_rotary_factor = 1});
  map("resid_pdrop", spec.dropout, 0.0);
  map.ignore({"attention_dropout", "embd_pdrop"});
  map.layers("num_hidden_layers", spec, layer);
}

NameTable phi_names(const ArchSpec&) {
  return {
      {"embedding.weight", "model.embed_tokens.weight"},
      {"layers.#.attention.qkv.*",
       "model.layers.#.self_attn.q_proj.* model.layers.#.self_attn.k_proj.* model.layers.#.self_attn.v_proj.*"},
      {"layers.#.attention.output.*", "model.layers.#.self_attn.dense.*"},
      {"layers.#.attention_norm.*", "model.layers.#.input_layernorm.*"},
      {"layers.#.ffn.up.*", "model.layers.#.mlp.fc1.*"},
      {"layers.#.ffn.down.*", "model.layers.#.mlp.fc2.*"},
      {"final_norm.*", "model.final_layernorm.*"},
      {"head.*", "lm_head.*"},
  };
}

NameTable phi3_names(const ArchSpec&) {
  return with_base({{"layers.#.attention.qkv.weight", "model.layers.#.self_attn.qkv_proj.weight"},
                    {"layers.#.ffn.gate_up.weight", "model.layers.#.mlp.gate_up_proj.weight"}},
                   llama_names());
}

}  // namespace

const Family kPhiFamily{.model_type = "phi",
                        .architecture = "PhiForCausalLM",
                        .config = phi,
                        .names = phi_names,
                        .base_prefix = "model.",
                        .ignorable = frequency_table};
const Family kPhi3Family{.model_type = "phi3",
                         .architecture = "Phi3ForCausalLM",
                         .config = phi3,
                         .names = phi3_names,
                         .base_prefix = "model.",
                         .ignorable = frequency_table};

}  // namespace transept
