// GPT-2 (learned positions; its Conv1D layers store matrices as [in, out]), GPT-J (rotary positions of neighbours,
// attention and feed-forward in parallel on one norm) and GPT-NeoX with Pythia (arXiv:2204.06745, 2304.01373: in
// parallel on two norms, queries, keys and values of a head together).

#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

int64_t times4(int64_t hidden) { return hidden > 0 && hidden < (int64_t{1} << 40) ? 4 * hidden : 0; }

// Keys that GPT-2 and GPT-J share.
GqaSpec& gpt_layer(ConfigMap& map, ArchSpec& spec, LayerSpec& layer, int64_t vocab, int64_t hidden, int64_t heads,
                   int64_t positions) {
  map("vocab_size", spec.vocab_size, vocab);
  map("n_embd", spec.hidden_size, hidden);
  map("n_positions", spec.max_position_embeddings, positions);
  map("initializer_range", spec.initializer_range, 0.02);
  map_norm<LayerNormSpec>(map, layer, "layer_norm_epsilon", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("n_head", attention.num_attention_heads, heads);
  map("n_inner", layer.ffn.intermediate_size, times4(spec.hidden_size));
  map.choice("activation_function", layer.ffn.kind, plain_activations(), "gelu_new");
  if (map.reading()) layer.ffn.bias = true;
  // Dropout elsewhere and task heads act in training or outside the language model; upcasting does not change float32.
  map.ignore({"attn_pdrop", "embd_pdrop", "n_ctx", "reorder_and_upcast_attn", "rotary", "gradient_checkpointing",
              "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
              "summary_use_proj", "task_specific_params", "scale_attn_weights", "tokenizer_class"});
  return attention;
}

void gpt2(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  GqaSpec& attention = gpt_layer(map, spec, layer, 50257, 768, 12, 1024);
  map("tie_word_embeddings", spec.tie_word_embeddings, true);
  map("resid_pdrop", spec.dropout, 0.1);
  bool scaled = attention.scale == 0;
  map("scale_attn_weights", scaled, true);
  map.require("scale_attn_by_inverse_layer_idx", false, "scores are scaled by the layer's index");
  map.require("add_cross_attention", false, "layers attend to an encoder");
  const LearnedPosition& position = map.kind<LearnedPosition>(spec.position, "position");
  map.demand(position.offset == 0, "rows stand before those of the positions");
  // A key of nanoGPT's: the class of transformers always has biases.
  bool biased = true;
  if (map.has("bias")) map("bias", biased);
  if (map.reading()) {
    attention.qkv_bias = attention.output_bias = layer.ffn.bias = biased;
    std::get<LayerNormSpec>(layer.norm).bias = biased;
    attention.scale = scaled ? 0 : 1;
    layer.position = spec.position;
  } else {
    map.write("embd_pdrop", spec.dropout);
    map.write("attn_pdrop", 0.0);
  }
  map.layers("n_layer", spec, layer, 12);
}

NameTable gpt2_names(const ArchSpec&) {
  return {
      {"embedding.weight", "transformer.wte.weight"},
      {"position.weight", "transformer.wpe.weight"},
      {"layers.#.attention.qkv.*", "transformer.h.#.attn.c_attn.*", Layout::kTransposed},
      {"layers.#.attention.output.*", "transformer.h.#.attn.c_proj.*", Layout::kTransposed},
      {"layers.#.attention_norm.*", "transformer.h.#.ln_1.*"},
      {"layers.#.ffn_norm.*", "transformer.h.#.ln_2.*"},
      {"layers.#.ffn.up.*", "transformer.h.#.mlp.c_fc.*", Layout::kTransposed},
      {"layers.#.ffn.down.*", "transformer.h.#.mlp.c_proj.*", Layout::kTransposed},
      {"final_norm.*", "transformer.ln_f.*"},
      {"head.weight", "lm_head.weight"},
  };
}

// The causal mask, which old checkpoints store beside the weights.
bool gpt2_mask(const ArchSpec&, const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

void gptj(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  GqaSpec& attention = gpt_layer(map, spec, layer, 50400, 4096, 16, 2048);
  map("tie_word_embeddings", spec.tie_word_embeddings, false);
  map("resid_pdrop", spec.dropout, 0.0);
  RopePosition& rope = map_position<RopePosition>(map, layer);
  // All of a head where it is null.
  const int64_t heads = attention.num_attention_heads;
  const int64_t head_dim = map.reading() ? (heads > 0 ? spec.hidden_size / heads : 0) : attention.head_dim;
  int64_t rotated = rope.rotated(head_dim);
  map("rotary_dim", rotated, map.has("rotary_dim") ? head_dim : 64);
  map.demand(rope.theta == 10000 && std::holds_alternative<NoScaling>(rope.scaling),
             "theta and scaling of rotary positions have no key");
  if (map.reading()) {
    if (head_dim > 0) rope.partial_rotary_factor = static_cast<double>(rotated) / static_cast<double>(head_dim);
    rope.pairing = RopePairing::kInterleaved;
    spec.head_bias = true;
    layer.block.form = BlockForm::kParallel;
  }
  map.layers("n_layer", spec, layer, 28);
}

NameTable gptj_names(const ArchSpec&) {
  return {
      {"embedding.weight", "transformer.wte.weight"},
      {"layers.#.attention.qkv.weight",
       "transformer.h.#.attn.q_proj.weight transformer.h.#.attn.k_proj.weight transformer.h.#.attn.v_proj.weight"},
      {"layers.#.attention.output.weight", "transformer.h.#.attn.out_proj.weight"},
      {"layers.#.attention_norm.*", "transformer.h.#.ln_1.*"},
      {"layers.#.ffn.up.*", "transformer.h.#.mlp.fc_in.*"},
      {"layers.#.ffn.down.*", "transformer.h.#.mlp.fc_out.*"},
      {"final_norm.*", "transformer.ln_f.*"},
      {"head.*", "lm_head.*"},
  };
}

bool gptj_mask(const ArchSpec&, const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".attn.embed_positions");
}

void gpt_neox(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", 2048);
  map_norm<LayerNormSpec>(map, layer, "layer_norm_eps", 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("num_attention_heads", attention.num_attention_heads);
  map_attention_bias(map, attention, true);
  map("intermediate_size", layer.ffn.intermediate_size, 24576);
  map.choice("hidden_act", layer.ffn.kind, plain_activations(), "gelu");
  map("hidden_dropout", spec.dropout, 0.0);
  bool parallel = layer.block.form == BlockForm::kParallelTwoNorms;
  map("use_parallel_residual", parallel, true);
  RopePosition& rope = map_position<RopePosition>(map, layer);
  RopeDefaults defaults{.partial_rotary_factor = 0.25};
  if (map.reading()) {
    map("rotary_emb_base", defaults.theta, 10000.0);
    map("rotary_pct", defaults.partial_rotary_factor, 0.25);
  } else {
    map.write("rotary_emb_base", rope.theta);
    map.write("rotary_pct", rope.partial_rotary_factor);
  }
  map_rope(map, rope, spec.max_position_embeddings, defaults);
  map.require("is_decoder", false, "layers attend to an encoder");
  map.ignore({"attention_dropout", "classifier_dropout", "gradient_checkpointing"});
  if (map.reading()) {
    layer.ffn.bias = true;
    layer.block.form = parallel ? BlockForm::kParallelTwoNorms : BlockForm::kSequential;
  }
  map.layers("num_hidden_layers", spec, layer);
}

NameTable gpt_neox_names(const ArchSpec&) {
  return {
      {"embedding.weight", "gpt_neox.embed_in.weight"},
      {"layers.#.attention.qkv.*", "gpt_neox.layers.#.attention.query_key_value.*", Layout::kByGroup},
      {"layers.#.attention.output.*", "gpt_neox.layers.#.attention.dense.*"},
      {"layers.#.attention_norm.*", "gpt_neox.layers.#.input_layernorm.*"},
      {"layers.#.ffn_norm.*", "gpt_neox.layers.#.post_attention_layernorm.*"},
      {"layers.#.ffn.up.*", "gpt_neox.layers.#.mlp.dense_h_to_4h.*"},
      {"layers.#.ffn.down.*", "gpt_neox.layers.#.mlp.dense_4h_to_h.*"},
      {"final_norm.*", "gpt_neox.final_layer_norm.*"},
      {"head.weight", "embed_out.weight"},
  };
}

bool gpt_neox_mask(const ArchSpec& spec, const std::string& name) {
  return frequency_table(spec, name) || name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias");
}

}  // namespace

const Family kGpt2Family{.model_type = "gpt2",
                         .architecture = "GPT2LMHeadModel",
                         .config = gpt2,
                         .names = gpt2_names,
                         .base_prefix = "transformer.",
                         .ignorable = gpt2_mask};
const Family kGptJFamily{.model_type = "gptj",
                         .architecture = "GPTJForCausalLM",
                         .config = gptj,
                         .names = gptj_names,
                         .base_prefix = "transformer.",
                         .ignorable = gptj_mask};
const Family kGptNeoXFamily{.model_type = "gpt_neox",
                            .architecture = "GPTNeoXForCausalLM",
                            .config = gpt_neox,
                            .names = gpt_neox_names,
                            .base_prefix = "gpt_neox.",
                            .ignorable = gpt_neox_mask};

}  // namespace transept
