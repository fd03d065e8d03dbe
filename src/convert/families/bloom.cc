// BLOOM (arXiv:2211.05100), MPT and Falcon (arXiv:2311.16867). BLOOM and MPT have linear biases by distance (ALiBi);
// Falcon has rotary positions and one KV head, or a few, for all query heads.

#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

int64_t times(int64_t factor, int64_t hidden) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return hidden > 0 && hidden < kMost && factor > 0 && factor < kMost ? factor * hidden : 0;
}

void bloom(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map("vocab_size", spec.vocab_size);
  map(map.has("n_embed") && !map.has("hidden_size") ? "n_embed" : "hidden_size", spec.hidden_size);
  map_max_positions(map, spec, "seq_length", 2048);  // what it was trained on: the biases know no end
  map("tie_word_embeddings", spec.tie_word_embeddings, true);
  map("initializer_range", spec.initializer_range, 0.02);
  map_norm<LayerNormSpec>(map, layer, "layer_norm_epsilon", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map(map.has("num_attention_heads") ? "num_attention_heads" : "n_head", attention.num_attention_heads);
  map("hidden_dropout", spec.dropout, 0.0);
  map.require("apply_residual_connection_post_layernorm", false, "the residual stream is taken behind the norm");
  map_position<AlibiPosition>(map, layer);
  map.require("position", "alibi", "positions are others than biases by distance");
  map.demand(layer.ffn.intermediate_size == times(4, spec.hidden_size),
             "ffn.intermediate_size is not four times hidden_size");
  map.ignore({"attention_dropout", "attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion",
              "n_inner", "offset_alibi", "pretraining_tp", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact",
              "unk_token_id"});
  if (map.reading()) {
    spec.embedding_norm = true;
    attention.qkv_bias = attention.output_bias = layer.ffn.bias = true;
    layer.ffn.kind = FfnKind::kGeluTanh;
    layer.ffn.intermediate_size = times(4, spec.hidden_size);
  }
  map.layers(map.has("num_hidden_layers") ? "num_hidden_layers" : "n_layer", spec, layer);
}

NameTable bloom_names(const ArchSpec&) {
  return {
      {"embedding.weight", "transformer.word_embeddings.weight"},
      {"embedding_norm.*", "transformer.word_embeddings_layernorm.*"},
      {"layers.#.attention.qkv.*", "transformer.h.#.self_attention.query_key_value.*", Layout::kByGroup},
      {"layers.#.attention.output.*", "transformer.h.#.self_attention.dense.*"},
      {"layers.#.attention_norm.*", "transformer.h.#.input_layernorm.*"},
      {"layers.#.ffn_norm.*", "transformer.h.#.post_attention_layernorm.*"},
      {"layers.#.ffn.up.*", "transformer.h.#.mlp.dense_h_to_4h.*"},
      {"layers.#.ffn.down.*", "transformer.h.#.mlp.dense_4h_to_h.*"},
      {"final_norm.*", "transformer.ln_f.*"},
      {"head.weight", "lm_head.weight"},
  };
}

// The group attn_config, whose absent keys have defaults of their own.
void mpt_attention(ConfigMap& map, GqaSpec& attention, AlibiPosition& alibi) {
  map.group("attn_config", [&](ConfigMap& in) {
    map_clip(in, attention);
    if (!in.reading()) {
      const int64_t whole = static_cast<int64_t>(std::min(alibi.max_bias, 1e9));
      in.demand(static_cast<double>(whole) == alibi.max_bias, "position.max_bias is no whole number");
      in.write("alibi_bias_max", whole);
      in.write("alibi", true);
      return in.write("softmax_scale", attention.scale > 0 ? Json(attention.scale) : Json());
    }
    in("alibi_bias_max", alibi.max_bias, 8.0);
    in("softmax_scale", attention.scale, 0.0);
    in.require("alibi", true, "positions are learned");
    in.require("attn_type", "multihead_attention", "heads share keys and values");
    in.require("qk_ln", false, "queries and keys are normalized");
    in.require("prefix_lm", false, "a prefix sees later tokens");
    in.ignore({"attn_impl", "attn_pdrop", "attn_uses_sequence_id"});
  });
}

void mpt(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map("vocab_size", spec.vocab_size);
  map("d_model", spec.hidden_size);
  map_max_positions(map, spec, "max_seq_len", 2048);
  map("tie_word_embeddings", spec.tie_word_embeddings, true);
  map("initializer_range", spec.initializer_range, 0.02);
  map_norm(map, layer, "layer_norm_epsilon", 1e-5, LayerNormSpec{.bias = false});
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("n_heads", attention.num_attention_heads);
  int64_t ratio = spec.hidden_size > 0 ? layer.ffn.intermediate_size / spec.hidden_size : 0;
  map("expansion_ratio", ratio, 4);
  map.demand(ratio * spec.hidden_size == layer.ffn.intermediate_size,
             "ffn.intermediate_size is no multiple of hidden_size");
  mpt_attention(map, attention, map_position<AlibiPosition>(map, layer));
  map("resid_pdrop", spec.dropout, 0.0);
  map.require("no_bias", true, "projections and norms have biases");
  map.require("logit_scale", nullptr, "logits are scaled");
  map.require("norm_type", "low_precision_layernorm", "the norm is another one");
  map.ignore({"emb_pdrop", "embedding_fraction", "fc_type", "ffn_config", "init_config", "init_device",
              "learned_pos_emb", "tokenizer_name", "verbose"});
  if (map.reading()) {
    layer.ffn.kind = FfnKind::kGelu;
    layer.ffn.intermediate_size = times(ratio, spec.hidden_size);
  }
  map.layers("n_layers", spec, layer);
}

NameTable mpt_names(const ArchSpec&) {
  return {
      {"embedding.weight", "transformer.wte.weight"},
      {"layers.#.attention.qkv.weight", "transformer.blocks.#.attn.Wqkv.weight"},
      {"layers.#.attention.output.weight", "transformer.blocks.#.attn.out_proj.weight"},
      {"layers.#.attention_norm.weight", "transformer.blocks.#.norm_1.weight"},
      {"layers.#.ffn_norm.weight", "transformer.blocks.#.norm_2.weight"},
      {"layers.#.ffn.up.weight", "transformer.blocks.#.ffn.up_proj.weight"},
      {"layers.#.ffn.down.weight", "transformer.blocks.#.ffn.down_proj.weight"},
      {"final_norm.weight", "transformer.norm_f.weight"},
      {"head.weight", "lm_head.weight"},
  };
}

void falcon(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, true);
  map_max_positions(map, spec, "max_position_embeddings", 2048);
  map_norm<LayerNormSpec>(map, layer, "layer_norm_epsilon", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  const auto old = [&](const char* key, const char* older) { return map.has(older) && !map.has(key) ? older : key; };
  map(old("num_attention_heads", "n_head"), attention.num_attention_heads);
  const int64_t kv_heads = attention.num_key_value_heads;
  const bool two_norms = layer.block.form == BlockForm::kParallelTwoNorms;
  bool grouped = two_norms || (kv_heads != 1 && kv_heads != attention.num_attention_heads);
  bool parallel = layer.block.parallel();
  bool one = attention.num_key_value_heads == 1 && !grouped;
  map("new_decoder_architecture", grouped, false);
  map("multi_query", one, true);
  map("parallel_attn", parallel, true);
  if (!map.reading() || grouped) {
    const char* key = map.reading() ? old("num_kv_heads", "n_head_kv") : "num_kv_heads";
    map(key, attention.num_key_value_heads, attention.num_attention_heads);
  } else {
    attention.num_key_value_heads = one ? 1 : attention.num_attention_heads;
    map.ignore({"num_kv_heads", "n_head_kv"});
  }
  if (grouped) {
    int64_t norms = two_norms ? 2 : 1;
    map("num_ln_in_parallel_attn", norms, 2);
    if (map.reading() && norms != 1 && norms != 2) map.problem("num_ln_in_parallel_attn", "is neither 1 nor 2");
    layer.block.form = norms == 2 ? BlockForm::kParallelTwoNorms : BlockForm::kParallel;
  } else if (map.reading()) {
    map.ignore({"num_ln_in_parallel_attn"});
    layer.block.form = parallel ? BlockForm::kParallel : BlockForm::kSequential;
  }
  map("bias", attention.qkv_bias, false);
  map("ffn_hidden_size", layer.ffn.intermediate_size, times(4, spec.hidden_size));
  map.choice("activation", layer.ffn.kind, plain_activations(), "gelu");
  map("hidden_dropout", spec.dropout, 0.0);
  map.require("alibi", false, "biases by distance are added before the scores are scaled");
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  map.ignore({"attention_dropout", "apply_residual_connection_post_layernorm"});
  if (map.reading()) attention.output_bias = layer.ffn.bias = attention.qkv_bias;
  map.layers(old("num_hidden_layers", "n_layer"), spec, layer);
}

NameTable falcon_names(const ArchSpec& spec) {
  const bool two = spec.layers.front().block.form == BlockForm::kParallelTwoNorms;
  return {
      {"embedding.weight", "transformer.word_embeddings.weight"},
      {"layers.#.attention.qkv.*", "transformer.h.#.self_attention.query_key_value.*", Layout::kByGroup},
      {"layers.#.attention.output.*", "transformer.h.#.self_attention.dense.*"},
      {"layers.#.attention_norm.*", two ? "transformer.h.#.ln_attn.*" : "transformer.h.#.input_layernorm.*"},
      {"layers.#.ffn_norm.*", two ? "transformer.h.#.ln_mlp.*" : "transformer.h.#.post_attention_layernorm.*"},
      {"layers.#.ffn.up.*", "transformer.h.#.mlp.dense_h_to_4h.*"},
      {"layers.#.ffn.down.*", "transformer.h.#.mlp.dense_4h_to_h.*"},
      {"final_norm.*", "transformer.ln_f.*"},
      {"head.weight", "lm_head.weight"},
  };
}

}  // namespace

const Family kBloomFamily{.model_type = "bloom",
                          .architecture = "BloomForCausalLM",
                          .config = bloom,
                          .names = bloom_names,
                          .base_prefix = "transformer."};
const Family kMptFamily{.model_type = "mpt",
                        .architecture = "MptForCausalLM",
                        .config = mpt,
                        .names = mpt_names,
                        .base_prefix = "transformer."};
const Family kFalconFamily{.model_type = "falcon",
                           .architecture = "FalconForCausalLM",
                           .config = falcon,
                           .names = falcon_names,
                           .base_prefix = "transformer.",
                           .ignorable = frequency_table};

}  // namespace transept
