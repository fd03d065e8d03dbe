// OPT (arXiv:2205.01068): GPT-2's form with ReLU, and two rows before its table of positions.
#include "convert/families/common.h"
#include "convert/families/families.h"

namespace transept {
namespace {

void opt(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map("vocab_size", spec.vocab_size, 50272);
  map("hidden_size", spec.hidden_size, 768);
  map_max_positions(map, spec, "max_position_embeddings", 2048);
  map("tie_word_embeddings", spec.tie_word_embeddings, true);
  map("init_std", spec.initializer_range, 0.02);
  map("dropout", spec.dropout, 0.1);
  LayerNormSpec& norm = map.kind<LayerNormSpec>(layer.norm, "norm");
  map("layer_norm_elementwise_affine", norm.elementwise_affine, true);
  map.demand(norm.eps == 1e-5, "the norm's eps has no key, and is 1e-5");
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("num_attention_heads", attention.num_attention_heads, 12);
  map("ffn_dim", layer.ffn.intermediate_size, 3072);
  map.choice("activation_function", layer.ffn.kind, plain_activations(), "relu");
  map("enable_bias", layer.ffn.bias, true);
  bool before = layer.placement != NormPlacement::kPost;
  map("do_layer_norm_before", before, true);
  LearnedPosition& position = map.kind<LearnedPosition>(spec.position, "position");
  map.require("word_embed_proj_dim", spec.hidden_size, "embeddings have another width than layers");
  map.require("_remove_final_layer_norm", false, "there is no norm before the head");
  map.ignore({"activation_dropout", "attention_dropout", "layerdrop", "prefix"});
  if (map.reading()) {
    norm.bias = norm.elementwise_affine;
    attention.qkv_bias = attention.output_bias = layer.ffn.bias;
    layer.placement = before ? NormPlacement::kPre : NormPlacement::kPost;
    position.offset = 2;
    layer.position = spec.position;
  } else {
    map.write("word_embed_proj_dim", spec.hidden_size);
  }
  map.layers("num_hidden_layers", spec, layer, 12);
}

NameTable opt_names(const ArchSpec&) {
  return {
      {"embedding.weight", "model.decoder.embed_tokens.weight"},
      {"position.weight", "model.decoder.embed_positions.weight", Layout::kFromRow2},
      {"layers.#.attention.qkv.*",
       "model.decoder.layers.#.self_attn.q_proj.* model.decoder.layers.#.self_attn.k_proj.* "
       "model.decoder.layers.#.self_attn.v_proj.*"},
      {"layers.#.attention.output.*", "model.decoder.layers.#.self_attn.out_proj.*"},
      {"layers.#.attention_norm.*", "model.decoder.layers.#.self_attn_layer_norm.*"},
      {"layers.#.ffn_norm.*", "model.decoder.layers.#.final_layer_norm.*"},
      {"layers.#.ffn.up.*", "model.decoder.layers.#.fc1.*"},
      {"layers.#.ffn.down.*", "model.decoder.layers.#.fc2.*"},
      {"final_norm.*", "model.decoder.final_layer_norm.*"},
      {"head.weight", "lm_head.weight"},
  };
}

}  // namespace

const Family kOptFamily{
    .model_type = "opt", .architecture = "OPTForCausalLM", .config = opt, .names = opt_names, .base_prefix = "model."};

}  // namespace transept
