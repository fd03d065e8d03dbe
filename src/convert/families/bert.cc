// BERT (arXiv:1810.04805) and RoBERTa (arXiv:1907.11692): encoders with learned positions, post-norm, and a
// masked-token head that transforms before it names. A model saved without that head is one whose head is the table of
// embeddings, and has the pooler that its class has.

#include "convert/families/common.h"
#include "convert/families/families.h"

namespace transept {
namespace {

// Rows of RoBERTa's table of positions before the first token's: positions count from the id of the padding token.
constexpr int64_t kRobertaRows = 2;

bool is_base_class(const Json& architectures, std::string_view base) {
  return architectures.is_array() && !architectures.empty() && architectures[0] == base;
}

void encoder(ConfigMap& map, ArchSpec& spec, int64_t types, int64_t unread_rows, std::string_view base,
             std::string_view masked) {
  LayerSpec layer = map.common(spec);
  map_model(map, spec, true);
  int64_t positions = spec.max_position_embeddings + unread_rows;
  map("max_position_embeddings", positions, 512);
  map("type_vocab_size", spec.type_vocab_size, types);
  map_norm<LayerNormSpec>(map, layer, "layer_norm_eps", 1e-12);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map("num_attention_heads", attention.num_attention_heads);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, plain_activations(), "gelu");
  map("hidden_dropout_prob", spec.dropout, 0.1);
  LearnedPosition& position = map.kind<LearnedPosition>(spec.position, "position");
  map.demand(unread_rows > 0 || position.offset == 0, "rows stand before those of the positions");
  map.require("position_embedding_type", "absolute", "positions are not a table");
  map.require("is_decoder", false, "tokens would not see later ones");
  map.require("add_cross_attention", false, "layers attend to an encoder");
  map.ignore({"attention_probs_dropout_prob", "classifier_dropout", "gradient_checkpointing", "directionality",
              "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
              "pooler_type"});
  if (map.reading()) {
    spec.topology = Topology::kEncoder;
    position.offset = unread_rows;
    spec.max_position_embeddings = positions - unread_rows;
    spec.embedding_norm = true;
    const bool bare = !map.has("architectures") || is_base_class(map.value("architectures"), base);
    spec.head_transform = spec.head_bias = !bare;
    spec.pooler = bare;
    spec.pooling = Pooling::kCls;
    layer.placement = NormPlacement::kPost;
    layer.causal = false;
    layer.position = spec.position;
    attention.qkv_bias = attention.output_bias = layer.ffn.bias = true;
  } else {
    map.demand(spec.head_transform == spec.head_bias && spec.head_transform != spec.pooler,
               "the head is neither that of masked tokens nor a pooler");
    map.write("architectures", Json::array({spec.pooler ? base : masked}));
  }
  map.layers("num_hidden_layers", spec, layer);
}

void bert(ConfigMap& map, ArchSpec& spec) { encoder(map, spec, 2, 0, "BertModel", "BertForMaskedLM"); }

void roberta(ConfigMap& map, ArchSpec& spec) {
  encoder(map, spec, 2, kRobertaRows, "RobertaModel", "RobertaForMaskedLM");
  map.require("pad_token_id", kRobertaRows - 1, "positions would begin at another row");
  if (!map.reading()) map.write("pad_token_id", kRobertaRows - 1);
}

// Names behind a prefix of the family's own, '$' here, are the same.
NameTable named(const std::string& prefix, NameTable special) {
  static const NameTable all{
      {"embedding.weight", "$embeddings.word_embeddings.weight"},
      {"position.weight", "$embeddings.position_embeddings.weight"},
      {"token_type.weight", "$embeddings.token_type_embeddings.weight"},
      {"embedding_norm.*", "$embeddings.LayerNorm.*"},
      {"layers.#.attention.qkv.*",
       "$encoder.layer.#.attention.self.query.* $encoder.layer.#.attention.self.key.* "
       "$encoder.layer.#.attention.self.value.*"},
      {"layers.#.attention.output.*", "$encoder.layer.#.attention.output.dense.*"},
      {"layers.#.attention_norm.*", "$encoder.layer.#.attention.output.LayerNorm.*"},
      {"layers.#.ffn.up.*", "$encoder.layer.#.intermediate.dense.*"},
      {"layers.#.ffn.down.*", "$encoder.layer.#.output.dense.*"},
      {"layers.#.ffn_norm.*", "$encoder.layer.#.output.LayerNorm.*"},
      {"pooler.*", "$pooler.dense.*"},
  };
  NameTable names = with_base(std::move(special), all);
  for (NameRow& row : names) {
    for (size_t at; (at = row.stored.find('$')) != std::string::npos;) row.stored.replace(at, 1, prefix);
  }
  return names;
}

// A class without a head saves its names without the prefix.
NameTable bert_names(const ArchSpec& spec) {
  return named(spec.pooler ? "" : "bert.", {{"head_transform.*", "cls.predictions.transform.dense.*"},
                                            {"head_norm.*", "cls.predictions.transform.LayerNorm.*"},
                                            {"head.bias", "cls.predictions.bias"},
                                            {"head.weight", "cls.predictions.decoder.weight"}});
}

NameTable roberta_names(const ArchSpec& spec) {
  return named(spec.pooler ? "" : "roberta.",
               {{"position.weight", "$embeddings.position_embeddings.weight", Layout::kFromRow2},
                {"head_transform.*", "lm_head.dense.*"},
                {"head_norm.*", "lm_head.layer_norm.*"},
                {"head.bias", "lm_head.bias"},
                {"head.weight", "lm_head.decoder.weight"}});
}

// Lists of positions, a copy of the head's bias, and heads beside the masked-token one.
bool beside_the_head(const ArchSpec& spec, const std::string& name) {
  return name.ends_with("position_ids") || name == "cls.predictions.decoder.bias" || name == "lm_head.decoder.bias" ||
         name.starts_with("cls.seq_relationship.") ||
         (!spec.pooler && name.find("pooler.dense.") != std::string::npos) ||
         (!spec.head_transform && (name.starts_with("cls.") || name.starts_with("lm_head.")));
}

}  // namespace

const Family kBertFamily{.model_type = "bert",
                         .architecture = "BertForMaskedLM",
                         .config = bert,
                         .names = bert_names,
                         .base_prefix = "bert.",
                         .ignorable = beside_the_head};
const Family kRobertaFamily{.model_type = "roberta",
                            .architecture = "RobertaForMaskedLM",
                            .config = roberta,
                            .names = roberta_names,
                            .base_prefix = "roberta.",
                            .ignorable = beside_the_head};

}  // namespace transept
