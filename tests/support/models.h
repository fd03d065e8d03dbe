// Small models of every kind that the spec allows, for sweeps.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/rng.h"
#include "nn/model.h"

namespace transept {

struct SpecCase {
  std::string name;
  ArchSpec spec;
};

// attention heads x mask x position x norm and placement x ffn x biases, each kind with at least two partners.
inline std::vector<SpecCase> spec_cases() {
  std::vector<SpecCase> cases;
  const char* heads[] = {R"({"num_attention_heads": 4})",
                         R"({"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 6})",
                         R"({"num_attention_heads": 4, "num_key_value_heads": 1, "qkv_bias": true})"};
  const char* windows[] = {"0", "3", "1"};
  const char* positions[] = {"rope", "learned", "none"};
  const char* norms[] = {R"({"kind": "rmsnorm", "placement": "pre"})", R"({"kind": "layernorm", "placement": "pre"})",
                         R"({"kind": "layernorm", "placement": "post", "bias": false})",
                         R"({"kind": "rmsnorm", "placement": "post"})"};
  const char* ffns[] = {"swiglu", "gelu", "relu", "geglu", "gelu_tanh"};
  int n = 0;
  for (const char* head : heads) {
    for (const char* window : windows) {
      for (const char* position : positions) {
        for (const char* norm : norms) {
          const std::string ffn = ffns[n % 5];
          Json attention = parse_json(head, "heads");
          attention["sliding_window"] = std::stoi(window);
          if (n % 2) attention["output_bias"] = true;
          const Json document{{"vocab_size", 29},
                              {"hidden_size", 24},
                              {"max_position_embeddings", 40},
                              {"tie_word_embeddings", n % 3 != 0},
                              {"initializer_range", 0.15},
                              {"norm", parse_json(norm, "norm")},
                              {"position", {{"kind", position}}},
                              {"attention", attention},
                              {"ffn", {{"kind", ffn}, {"intermediate_size", 20}, {"bias", n % 4 == 0}}},
                              {"layers", {{{"repeat", 1}}, {{"attention", {{"sliding_window", 0}}}}}}};
          cases.push_back(
              {std::to_string(n) + "_" + position + "_w" + window + "_" + ffn, spec_from_json(document, "case")});
          ++n;
        }
      }
    }
  }
  return cases;
}

inline std::vector<int32_t> random_ids(int64_t count, int64_t vocab, uint64_t seed) {
  const CounterRng rng(seed, Stream::kTest);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(i), static_cast<uint64_t>(vocab))));
  return ids;
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
