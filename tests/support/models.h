// Small models with random parameters.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/rng.h"
#include "nn/model.h"

namespace transept {

inline std::vector<int32_t> random_ids(int64_t count, int64_t vocab, uint64_t seed) {
  const CounterRng rng(seed, Stream::kTest);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(i), static_cast<uint64_t>(vocab))));
  return ids;
}

// A small model of a topology, with `changes` to the document.
inline ArchSpec topology_spec(const std::string& topology, const Json& changes = Json::object()) {
  Json document{{"topology", topology},
                {"vocab_size", 29},
                {"hidden_size", 24},
                {"max_position_embeddings", 40},
                {"initializer_range", 0.15},
                {"norm", {{"kind", "layernorm"}}},
                {"position", {{"kind", "learned"}}},
                {"attention", {{"num_attention_heads", 4}}},
                {"ffn", {{"kind", "gelu"}, {"intermediate_size", 20}}}};
  if (topology == "encoder_decoder") {
    document["encoder"] = {{"num_hidden_layers", 2}};
    document["decoder"] = {{"num_hidden_layers", 2}};
  } else {
    document["num_hidden_layers"] = 2;
  }
  document.update(changes);
  return spec_from_json(document, topology);
}

// Random values everywhere, norms and biases included, so that nothing hides behind ones and zeros.
inline std::unique_ptr<Model> random_model(const ArchSpec& spec, bool trainable, uint64_t seed = 5) {
  ThreadPool pool(1);
  auto model = std::make_unique<Model>(spec, trainable);
  model->parameters().initialize(spec, seed, pool);
  const CounterRng rng(seed, Stream::kTest, 9);
  for (const auto& e : model->parameters().entries()) {
    if (e.decl.shape.size() > 1) continue;
    const auto values = model->parameters().values(e);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] += static_cast<float>(0.3 * rng.normal(static_cast<uint64_t>(e.offset) + i));
  }
  return model;
}

}  // namespace transept
