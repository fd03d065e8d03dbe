// The architecture spec: one declarative description from which a model is planned, trained, saved, run. See
// docs/spec.md.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "spec/attention.h"
#include "spec/block.h"
#include "spec/ffn.h"
#include "spec/moe.h"
#include "spec/norm.h"
#include "spec/params.h"
#include "spec/position.h"

namespace transept {

enum class Topology {
  kDecoder,         // one causal stack with a language-model head (GPT)
  kEncoder,         // one bidirectional stack with a head that names masked tokens (BERT, arXiv:1810.04805)
  kEncoderDecoder,  // a bidirectional stack, and a causal one that attends to it (arXiv:1706.03762; T5, BART)
};
template <>
struct EnumNames<Topology> {
  static constexpr std::array<std::string_view, 3> kNames{"decoder", "encoder", "encoder_decoder"};
};

// How a sequence's hidden states become one vector.
enum class Pooling { kMean, kCls };
template <>
struct EnumNames<Pooling> {
  static constexpr std::array<std::string_view, 2> kNames{"mean", "cls"};
};

// What one layer is made of. All derived values are resolved.
struct LayerSpec {
  NormSpec norm = RmsNormSpec{};
  NormPlacement placement = NormPlacement::kPre;
  BlockSpec block;
  PositionSpec position = RopePosition{};  // what acts inside attention
  AttentionSpec attention = GqaSpec{};
  FfnSpec ffn;
  MoeSpec moe;  // with experts: in place of ffn, whose form they have
  // From the topology.
  bool causal = true;
  bool cross_attention = false;  // between attention and ffn, with the heads of `attention`, no window and no positions

  int64_t sublayers() const { return cross_attention ? 3 : 2; }
};

// A run of layers with what stands before and after it.
struct StackSpec {
  PositionSpec position = RopePosition{};  // what is added to the embeddings
  NormSpec final_norm = RmsNormSpec{};     // of the group "norm"; in the model only when has_final_norm()
  std::vector<LayerSpec> layers;           // expanded: one entry a layer

  bool has_final_norm() const { return layers.empty() || layers.back().placement != NormPlacement::kPost; }
};

// Scalars at the top of the JSON document. The stack that ends in the head is the spec's own; an encoder-decoder has
// its encoder beside it.
struct ArchSpec : StackSpec {
  std::string name = "unnamed";
  std::string description;  // one line for a listing
  Topology topology = Topology::kDecoder;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t max_position_embeddings = 0;
  int64_t type_vocab_size = 0;
  bool scale_embedding = false;
  bool embedding_norm = false;
  bool tie_word_embeddings = true;
  bool head_transform = false;
  bool head_bias = false;
  double logit_scale = 1;
  double final_logit_softcap = 0;
  Pooling pooling = Pooling::kMean;
  bool pooler = false;
  double dropout = 0;  // on the embeddings, and on each sublayer's output before it joins the residual stream
  double initializer_range = 0.02;
  StackSpec encoder;  // no layers unless the topology is encoder_decoder

  template <class V>
  void fields(V& v) {
    v("name", name, Any{}, "free text");
    v("description", description, Any{}, "one line of free text for a listing");
    v("topology", topology, Any{}, "which stacks the model has");
    v("vocab_size", vocab_size, Between{2, 16777216}, "rows of the embedding table");
    v("hidden_size", hidden_size, Between{1, 1048576}, "width of the residual stream");
    v("max_position_embeddings", max_position_embeddings, Between{1, 1073741824}, "longest context, in tokens");
    v("type_vocab_size", type_vocab_size, Between{0, 65536},
      "rows of a table of segment types added to the embeddings");
    v("scale_embedding", scale_embedding, Any{}, "token embeddings are multiplied by sqrt(hidden_size)");
    v("embedding_norm", embedding_norm, Any{}, "a norm between the embeddings and the first layer");
    v("tie_word_embeddings", tie_word_embeddings, Any{}, "the head is the embedding table");
    v("head_transform", head_transform, Any{},
      "a linear layer, the ffn's activation and a norm before the head (BERT)");
    v("head_bias", head_bias, Any{}, "a bias on the logits");
    v("logit_scale", logit_scale, Above{0}, "factor on the logits");
    v("final_logit_softcap", final_logit_softcap, AtLeast{0}, "c: logits become c tanh(logit / c); 0: none");
    v("pooling", pooling, Any{}, "a sequence as one vector: mean of its hidden states, or the first one");
    v("pooler", pooler, Any{}, "a linear layer and tanh on the pooled vector (BERT)");
    v("dropout", dropout, Fraction{}, "probability of zeroing an element while training");
    v("initializer_range", initializer_range, Above{0}, "standard deviation of the initial matrices");
  }

  bool encoder_decoder() const { return topology == Topology::kEncoderDecoder; }
  // On token embeddings.
  double embedding_scale() const { return scale_embedding ? std::sqrt(static_cast<double>(hidden_size)) : 1; }

  // Every parameter of the model, in storage order. Names: "embedding.weight", "token_type.weight", "position.weight"
  // or "position.bias", "embedding_norm.*", "layers.I.attention_norm.*", "layers.I.attention.*",
  // "layers.I.cross_attention_norm.*", "layers.I.cross_attention.*", "layers.I.ffn_norm.*", "layers.I.ffn.*" (and
  // "*_post_norm.*" with sandwich placement), "final_norm.*", "head_transform.*", "head_norm.*", "head.weight" (untied
  // only), "head.bias", "pooler.*"; an encoder's stack has the same names behind "encoder.".
  ParamList declare() const;
};

inline constexpr int64_t kMaxLayers = 4096;

// Reads a spec document (with "extends" and "layers" overrides), filling in derived values; throws InputError listing
// every problem: unknown keys, wrong types, impossible values, each with its path ("layers[1].attention.head_dim"),
// what was got and what is allowed.
ArchSpec spec_from_json(const Json& document, const std::string& where);

// The full spec as a document that spec_from_json reads back to the same ArchSpec; equal neighbouring layers are one
// "repeat" group.
Json spec_to_json(const ArchSpec& spec);

// JSON Schema (draft 2020-12) of the document, made from the same `fields` lists.
Json spec_schema();

}  // namespace transept
