// StarCoder2 (arXiv:2402.19173): rotary positions and grouped-query attention with LayerNorm, a plain feed-forward
// network and biases.
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

void starcoder2(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, true);
  map_max_positions(map, spec, "max_position_embeddings", 4096);
  map_norm<LayerNormSpec>(map, layer, "norm_epsilon", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention, 2);
  map_window(map, attention.sliding_window, 0);
  map("intermediate_size", layer.ffn.intermediate_size, 12288);
  map.choice("hidden_act", layer.ffn.kind, plain_activations(), "gelu_pytorch_tanh");
  map("use_bias", layer.ffn.bias, true);
  map.require("attention_bias", layer.ffn.bias,
              "attention has biases where the network has none, or the other way round");
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  map("residual_dropout", spec.dropout, 0.0);
  map.require("mlp_type", "default", "the feed-forward network is gated");
  map.require("norm_type", "layer_norm", "the norm is another one");
  map.ignore({"attention_dropout", "embedding_dropout"});
  if (map.reading()) attention.qkv_bias = attention.output_bias = layer.ffn.bias;
  map.layers("num_hidden_layers", spec, layer);
}

NameTable starcoder2_names(const ArchSpec&) {
  return with_base({{"layers.#.attention_norm.*", "model.layers.#.input_layernorm.*"},
                    {"layers.#.ffn_norm.*", "model.layers.#.post_attention_layernorm.*"},
                    {"layers.#.ffn.up.*", "model.layers.#.mlp.c_fc.*"},
                    {"layers.#.ffn.down.*", "model.layers.#.mlp.c_proj.*"},
                    {"final_norm.*", "model.norm.*"}},
                   llama_names());
}

}  // namespace

const Family kStarcoder2Family{.model_type = "starcoder2",
                               .architecture = "Starcoder2ForCausalLM",
                               .config = starcoder2,
                               .names = starcoder2_names,
                               .base_prefix = "model.",
                               .ignorable = frequency_table};

}  // namespace transept
