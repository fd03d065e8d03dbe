// BART (arXiv:1910.13461) and Marian's translation models (arXiv:1804.00344): the original transformer's form
// (arXiv:1706.03762) with learned positions and a norm of the embeddings, or with its waves and a bias on the logits.

#include "convert/families/common.h"
#include "convert/families/families.h"

namespace transept {
namespace {

struct Stack {
  const char *layers, *heads, *width;
};
constexpr Stack kEncoder{"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"},
    kDecoder{"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"};

void map_stack(ConfigMap& map, const Stack& keys, StackSpec& stack, LayerSpec layer) {
  GqaSpec& attention = std::get<GqaSpec>(layer.attention);
  map(keys.heads, attention.num_attention_heads, 16);
  map(keys.width, layer.ffn.intermediate_size, 4096);
  map.layers(keys.layers, stack, layer, 12);
}

template <class Position>
void bart(ConfigMap& map, ArchSpec& spec, const Position& like) {
  LayerSpec layer = map.common(spec);
  map.demand(spec.encoder_decoder(), "topology is not encoder_decoder");
  map("vocab_size", spec.vocab_size);
  map("d_model", spec.hidden_size, 1024);
  map_max_positions(map, spec, "max_position_embeddings", 1024);
  map("tie_word_embeddings", spec.tie_word_embeddings, true);
  map("init_std", spec.initializer_range, 0.02);
  map("scale_embedding", spec.scale_embedding, false);
  map("dropout", spec.dropout, 0.1);
  LayerNormSpec& norm = map.kind<LayerNormSpec>(layer.norm, "norm");
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map.choice("activation_function", layer.ffn.kind, plain_activations(), "gelu");
  Position& position = map.kind<Position>(spec.position, "position");
  for (const char* key : {"add_final_layer_norm", "normalize_before", "is_decoder"})
    map.require(key, false, "norms stand elsewhere, or the model is one half of itself");
  map.ignore({"activation_dropout",
              "add_bias_logits",
              "attention_dropout",
              "classif_dropout",
              "classifier_dropout",
              "decoder_layerdrop",
              "decoder_start_token_id",
              "encoder_layerdrop",
              "extra_pos_embeddings",
              "forced_bos_token_id",
              "forced_eos_token_id",
              "gradient_checkpointing",
              "is_encoder_decoder",
              "num_hidden_layers",
              "task_specific_params",
              "early_stopping",
              "no_repeat_ngram_size",
              "num_beams",
              "bad_words_ids",
              "max_length",
              "force_bos_token_to_be_generated",
              "classifier",
              "normalize_embedding"});
  if (map.reading()) {
    spec.topology = Topology::kEncoderDecoder;
    norm = {.eps = 1e-5};
    position = like;
    layer.position = spec.position;
    layer.placement = NormPlacement::kPost;
    layer.ffn.bias = attention.qkv_bias = attention.output_bias = true;
  } else {
    map.demand(norm.eps == 1e-5, "the norm's eps has no key, and is 1e-5");
    map.write("is_encoder_decoder", true);
  }
  LayerSpec encoder = map.reading() ? layer : spec.encoder.layers.front();
  encoder.causal = false;
  map_stack(map, kEncoder, spec.encoder, encoder);
  if (map.reading()) layer.cross_attention = true;
  map_stack(map, kDecoder, spec, layer);
}

void bart(ConfigMap& map, ArchSpec& spec) {
  bart(map, spec, LearnedPosition{.offset = 2});
  map.require("static_position_embeddings", false, "positions are waves");
  if (map.reading()) spec.embedding_norm = true;
}

void marian(ConfigMap& map, ArchSpec& spec) {
  bart(map, spec, SinusoidalPosition{.pairing = RopePairing::kHalfSplit});
  map.require("share_encoder_decoder_embeddings", true, "the stacks have tables of their own");
  map.require("static_position_embeddings", true, "positions are learned");
  if (!map.reading()) return map.write("decoder_vocab_size", spec.vocab_size);
  map.require("decoder_vocab_size", spec.vocab_size, "the stacks have vocabularies of their own");
  spec.head_bias = true;
}

NameTable bart_names(const ArchSpec&) {
  return {
      {"embedding.weight", "model.shared.weight"},
      {"encoder.position.weight", "model.encoder.embed_positions.weight", Layout::kFromRow2},
      {"encoder.embedding_norm.*", "model.encoder.layernorm_embedding.*"},
      {"encoder.layers.#.attention.qkv.*",
       "model.encoder.layers.#.self_attn.q_proj.* model.encoder.layers.#.self_attn.k_proj.* "
       "model.encoder.layers.#.self_attn.v_proj.*"},
      {"encoder.layers.#.attention.output.*", "model.encoder.layers.#.self_attn.out_proj.*"},
      {"encoder.layers.#.attention_norm.*", "model.encoder.layers.#.self_attn_layer_norm.*"},
      {"encoder.layers.#.ffn.up.*", "model.encoder.layers.#.fc1.*"},
      {"encoder.layers.#.ffn.down.*", "model.encoder.layers.#.fc2.*"},
      {"encoder.layers.#.ffn_norm.*", "model.encoder.layers.#.final_layer_norm.*"},
      {"position.weight", "model.decoder.embed_positions.weight", Layout::kFromRow2},
      {"embedding_norm.*", "model.decoder.layernorm_embedding.*"},
      {"layers.#.attention.qkv.*",
       "model.decoder.layers.#.self_attn.q_proj.* model.decoder.layers.#.self_attn.k_proj.* "
       "model.decoder.layers.#.self_attn.v_proj.*"},
      {"layers.#.attention.output.*", "model.decoder.layers.#.self_attn.out_proj.*"},
      {"layers.#.attention_norm.*", "model.decoder.layers.#.self_attn_layer_norm.*"},
      {"layers.#.cross_attention.q.*", "model.decoder.layers.#.encoder_attn.q_proj.*"},
      {"layers.#.cross_attention.kv.*",
       "model.decoder.layers.#.encoder_attn.k_proj.* model.decoder.layers.#.encoder_attn.v_proj.*"},
      {"layers.#.cross_attention.output.*", "model.decoder.layers.#.encoder_attn.out_proj.*"},
      {"layers.#.cross_attention_norm.*", "model.decoder.layers.#.encoder_attn_layer_norm.*"},
      {"layers.#.ffn.up.*", "model.decoder.layers.#.fc1.*"},
      {"layers.#.ffn.down.*", "model.decoder.layers.#.fc2.*"},
      {"layers.#.ffn_norm.*", "model.decoder.layers.#.final_layer_norm.*"},
      {"head.weight", "lm_head.weight"},
      {"head.bias", "final_logits_bias", Layout::kOneRow},
  };
}

// Copies of the table of embeddings, and of the waves.
bool copies(const ArchSpec& spec, const std::string& name) {
  return name.ends_with("coder.embed_tokens.weight") || name.ends_with("coder.version") ||
         (!std::holds_alternative<LearnedPosition>(spec.position) && name.ends_with("coder.embed_positions.weight"));
}

}  // namespace

const Family kBartFamily{.model_type = "bart",
                         .architecture = "BartForConditionalGeneration",
                         .config = bart,
                         .names = bart_names,
                         .ignorable = copies,
                         .zeros = "final_logits_bias"};
const Family kMarianFamily{.model_type = "marian",
                           .architecture = "MarianMTModel",
                           .config = marian,
                           .names = bart_names,
                           .ignorable = copies};

}  // namespace transept
