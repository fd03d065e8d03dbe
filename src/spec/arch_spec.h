// The architecture spec: one declarative description from which a model is planned, trained, saved, run. See
// docs/spec.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "spec/attention.h"
#include "spec/ffn.h"
#include "spec/norm.h"
#include "spec/params.h"
#include "spec/position.h"

namespace transept {

enum class Topology { kDecoder };
template <>
struct EnumNames<Topology> {
  static constexpr std::array<std::string_view, 1> kNames{"decoder"};
};

// What one layer is made of. All derived values are resolved.
struct LayerSpec {
  NormSpec norm = RmsNormSpec{};
  NormPlacement placement = NormPlacement::kPre;
  AttentionSpec attention = GqaSpec{};
  FfnSpec ffn;
};

// Scalars at the top of the JSON document; the layer groups stand beside them in ArchSpec.
struct ArchSpec {
  std::string name = "unnamed";
  std::string description;  // one line for a listing
  Topology topology = Topology::kDecoder;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = true;
  double dropout = 0;  // on the embeddings, and on each sublayer's output before it joins the residual stream
  double initializer_range = 0.02;
  PositionSpec position = RopePosition{};
  NormSpec final_norm = RmsNormSpec{};  // of the top-level "norm"; present in the model only with pre placement
  std::vector<LayerSpec> layers;        // expanded: one entry a layer

  template <class V>
  void fields(V& v) {
    v("name", name, Any{}, "free text");
    v("description", description, Any{}, "one line of free text for a listing");
    v("topology", topology, Any{}, "which stacks the model has");
    v("vocab_size", vocab_size, Between{2, 16777216}, "rows of the embedding table");
    v("hidden_size", hidden_size, Between{1, 1048576}, "width of the residual stream");
    v("max_position_embeddings", max_position_embeddings, Between{1, 1073741824}, "longest context, in tokens");
    v("tie_word_embeddings", tie_word_embeddings, Any{}, "the head is the embedding table");
    v("dropout", dropout, Fraction{}, "probability of zeroing an element while training");
    v("initializer_range", initializer_range, Above{0}, "standard deviation of the initial matrices");
  }

  bool has_final_norm() const { return layers.empty() || layers.back().placement == NormPlacement::kPre; }

  // Every parameter of the model, in storage order. Names: "embedding.weight", "position.weight",
  // "layers.I.attention_norm.*", "layers.I.attention.*", "layers.I.ffn_norm.*", "layers.I.ffn.*", "final_norm.*",
  // "head.weight" (untied only).
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
