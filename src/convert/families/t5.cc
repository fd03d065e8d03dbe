// T5 (arXiv:1910.10683) and T5 v1.1: an encoder and a decoder with biases by distance, RMSNorm, unscaled scores.

#include "convert/families/common.h"
#include "convert/families/families.h"

namespace transept {
namespace {

// feed_forward_proj: an activation, or "gated-" and an activation, of which gelu is the one by tanh.
void map_feed_forward(ConfigMap& map, FfnKind& kind) {
  static const ConfigMap::Choices<FfnKind> all{{"relu", FfnKind::kRelu},         {"gated-gelu", FfnKind::kGeglu},
                                               {"gated-silu", FfnKind::kSwiglu}, {"gated-relu", FfnKind::kReglu},
                                               {"gelu", FfnKind::kGelu},         {"gelu_new", FfnKind::kGeluTanh},
                                               {"silu", FfnKind::kSilu}};
  map.choice("feed_forward_proj", kind, all, "relu");
  map.ignore({"dense_act_fn", "is_gated_act"});  // what it was split into
}

void t5(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  map.demand(spec.encoder_decoder(), "topology is not encoder_decoder");
  map("vocab_size", spec.vocab_size);
  map("d_model", spec.hidden_size, 512);
  map_max_positions(map, spec, "n_positions", 512);  // what it was trained on: the biases know no end
  map_norm<RmsNormSpec>(map, layer, "layer_norm_epsilon", 1e-6);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("num_heads", attention.num_attention_heads, 8);
  map("d_kv", attention.head_dim, 64);
  map("d_ff", layer.ffn.intermediate_size, 2048);
  map_feed_forward(map, layer.ffn.kind);
  map("dropout_rate", spec.dropout, 0.1);
  T5Position& position = map.kind<T5Position>(spec.position, "position");
  map("relative_attention_num_buckets", position.num_buckets, 32);
  map("relative_attention_max_distance", position.max_distance, 128);
  map.require("is_decoder", false, "the model is one half of itself");
  map.ignore({"classifier_dropout", "decoder_start_token_id", "initializer_factor", "is_encoder_decoder", "output_past",
              "task_specific_params", "gradient_checkpointing"});

  // A tied head reads states scaled by 1 / sqrt(d_model); scale_decoder_outputs, where it is said, is about that alone.
  const double scale = spec.hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(spec.hidden_size)) : 1;
  bool scaled = spec.logit_scale != 1;
  map("tie_word_embeddings", spec.tie_word_embeddings, true);
  if (map.reading() || (spec.tie_word_embeddings && !scaled))
    map("scale_decoder_outputs", scaled, spec.tie_word_embeddings);
  if (map.reading()) {
    spec.topology = Topology::kEncoderDecoder;
    spec.logit_scale = scaled ? scale : 1;
    attention.scale = 1;
    layer.position = spec.position;
  }
  LayerSpec encoder = layer;
  encoder.causal = false;
  map.layers("num_layers", spec.encoder, encoder, 6);
  if (map.reading()) layer.cross_attention = true;
  map.layers("num_decoder_layers", spec, layer, static_cast<int64_t>(spec.encoder.layers.size()));
}

NameTable names(const ArchSpec&) {
  return {
      {"embedding.weight", "shared.weight"},
      {"encoder.position.bias", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
      {"encoder.layers.#.attention.qkv.weight",
       "encoder.block.#.layer.0.SelfAttention.q.weight encoder.block.#.layer.0.SelfAttention.k.weight "
       "encoder.block.#.layer.0.SelfAttention.v.weight"},
      {"encoder.layers.#.attention.output.weight", "encoder.block.#.layer.0.SelfAttention.o.weight"},
      {"encoder.layers.#.attention_norm.weight", "encoder.block.#.layer.0.layer_norm.weight"},
      {"encoder.layers.#.ffn_norm.weight", "encoder.block.#.layer.1.layer_norm.weight"},
      {"encoder.layers.#.ffn.up.weight", "encoder.block.#.layer.1.DenseReluDense.wi.weight"},
      {"encoder.layers.#.ffn.gate_up.weight",
       "encoder.block.#.layer.1.DenseReluDense.wi_0.weight encoder.block.#.layer.1.DenseReluDense.wi_1.weight"},
      {"encoder.layers.#.ffn.down.weight", "encoder.block.#.layer.1.DenseReluDense.wo.weight"},
      {"encoder.final_norm.weight", "encoder.final_layer_norm.weight"},
      {"position.bias", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
      {"layers.#.attention.qkv.weight",
       "decoder.block.#.layer.0.SelfAttention.q.weight decoder.block.#.layer.0.SelfAttention.k.weight "
       "decoder.block.#.layer.0.SelfAttention.v.weight"},
      {"layers.#.attention.output.weight", "decoder.block.#.layer.0.SelfAttention.o.weight"},
      {"layers.#.attention_norm.weight", "decoder.block.#.layer.0.layer_norm.weight"},
      {"layers.#.cross_attention.q.weight", "decoder.block.#.layer.1.EncDecAttention.q.weight"},
      {"layers.#.cross_attention.kv.weight",
       "decoder.block.#.layer.1.EncDecAttention.k.weight decoder.block.#.layer.1.EncDecAttention.v.weight"},
      {"layers.#.cross_attention.output.weight", "decoder.block.#.layer.1.EncDecAttention.o.weight"},
      {"layers.#.cross_attention_norm.weight", "decoder.block.#.layer.1.layer_norm.weight"},
      {"layers.#.ffn_norm.weight", "decoder.block.#.layer.2.layer_norm.weight"},
      {"layers.#.ffn.up.weight", "decoder.block.#.layer.2.DenseReluDense.wi.weight"},
      {"layers.#.ffn.gate_up.weight",
       "decoder.block.#.layer.2.DenseReluDense.wi_0.weight decoder.block.#.layer.2.DenseReluDense.wi_1.weight"},
      {"layers.#.ffn.down.weight", "decoder.block.#.layer.2.DenseReluDense.wo.weight"},
      {"final_norm.weight", "decoder.final_layer_norm.weight"},
      {"head.weight", "lm_head.weight"},
  };
}

// Copies of the table of embeddings, and a bias that no layer reads.
bool ignorable(const ArchSpec&, const std::string& name) {
  return name == "encoder.embed_tokens.weight" || name == "decoder.embed_tokens.weight" ||
         name == "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
}

}  // namespace

const Family kT5Family{.model_type = "t5",
                       .architecture = "T5ForConditionalGeneration",
                       .config = t5,
                       .names = names,
                       .ignorable = ignorable};

}  // namespace transept
