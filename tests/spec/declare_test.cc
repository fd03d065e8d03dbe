// Names, shapes and totals of declared parameters.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "spec/arch_spec.h"
#include "spec/presets.h"
#include "spec/public_models.h"

namespace transept {
namespace {

int64_t total(const ArchSpec& spec) {
  int64_t sum = 0;
  for (const ParamDecl& p : spec.declare().decls()) {
    int64_t elements = 1;
    for (const int64_t extent : p.shape) elements *= extent;
    sum += elements;
  }
  return sum;
}

std::vector<std::string> names(const ArchSpec& spec) {
  std::vector<std::string> all;
  for (const ParamDecl& p : spec.declare().decls()) all.push_back(p.name);
  return all;
}

TEST(Declare, NamesInStorageOrder) {
  Json document = preset_document("llama-3-8b");
  document["num_hidden_layers"] = 1;
  EXPECT_EQ(names(spec_from_json(document, "t")),
            (std::vector<std::string>{"embedding.weight", "layers.0.attention_norm.weight",
                                      "layers.0.attention.qkv.weight", "layers.0.attention.output.weight",
                                      "layers.0.ffn_norm.weight", "layers.0.ffn.gate_up.weight",
                                      "layers.0.ffn.down.weight", "final_norm.weight", "head.weight"}));
  document = preset_document("gpt2");
  document["num_hidden_layers"] = 1;
  EXPECT_EQ(names(spec_from_json(document, "t")),
            (std::vector<std::string>{
                "embedding.weight", "position.weight", "layers.0.attention_norm.weight", "layers.0.attention_norm.bias",
                "layers.0.attention.qkv.weight", "layers.0.attention.qkv.bias", "layers.0.attention.output.weight",
                "layers.0.attention.output.bias", "layers.0.ffn_norm.weight", "layers.0.ffn_norm.bias",
                "layers.0.ffn.up.weight", "layers.0.ffn.up.bias", "layers.0.ffn.down.weight", "layers.0.ffn.down.bias",
                "final_norm.weight", "final_norm.bias"}));
}

TEST(Declare, ScopesAndShapes) {
  const ArchSpec spec = preset("llama-3-8b");
  for (const ParamDecl& p : spec.declare().decls()) {
    if (p.name == "layers.31.attention.qkv.weight") {
      EXPECT_EQ(p.shape, (std::vector<int64_t>{(32 + 16) * 128, 4096}));
      EXPECT_EQ(p.layer, 31);
      EXPECT_EQ(p.part, Part::kAttention);
      EXPECT_TRUE(p.decays());
    }
    if (p.name == "final_norm.weight") {
      EXPECT_EQ(p.layer, -1);
      EXPECT_EQ(p.part, Part::kNorm);
      EXPECT_FALSE(p.decays());
    }
    if (p.name == "head.weight") {
      EXPECT_EQ(p.part, Part::kHead);
    }
  }
}

TEST(Declare, PostNormHasNoFinalNorm) {
  Json document = preset_document("small-1m");
  const int64_t pre = total(spec_from_json(document, "t"));
  document["norm"]["placement"] = "post";
  const ArchSpec post = spec_from_json(document, "t");
  EXPECT_FALSE(post.has_final_norm());
  EXPECT_EQ(total(post), pre - 128);
}

TEST(Declare, TotalsOfPublicModels) {
  for (const PublicModel& m : kPublicModels)
    EXPECT_EQ(total(spec_from_json(document_of(m), m.name)), m.total) << m.name;
}

// A table that any count would satisfy checks nothing: one bias more, one head matrix more must be seen.
TEST(Declare, TotalsNoticeABias) {
  Json document = document_of(kPublicModels[0]);
  document["attention"]["output_bias"] = false;
  EXPECT_EQ(total(spec_from_json(document, "t")), kPublicModels[0].total - 12 * 768);
  document = document_of(kPublicModels[0]);
  document["tie_word_embeddings"] = false;
  EXPECT_EQ(total(spec_from_json(document, "t")), kPublicModels[0].total + 50257 * 768);
}

TEST(Declare, TotalsOfPresets) {
  const std::pair<const char*, int64_t> known[] = {
      {"llama-2-7b", 6738415616},
      {"llama-3-8b", 8030261248},
      {"mistral-7b", 7241732096},
      {"gpt2", 124439808},
      {"small-135m", 134515008},
      {"small-1m", 512 * 128 + 128 + 6 * (256 + 256 * 128 + 128 * 128 + 3 * 288 * 128)},
      {"small-3m", 512 * 192 + 192 + 8 * (384 + 320 * 192 + 192 * 192 + 3 * 512 * 192)},
      {"small-10m", 512 * 384 + 384 + 6 * (768 + 640 * 384 + 384 * 384 + 3 * 1024 * 384)},
      {"small-30m", 512 * 512 + 512 + 10 * (1024 + 768 * 512 + 512 * 512 + 3 * 1536 * 512)},
      {"nanogpt-cpu", 512 * 128 + 64 * 128 + 128 + 4 * (256 + 4 * 128 * 128 + 8 * 128 * 128)},
      {"bench-a", 512 * 384 + 384 + 6 * (768 + 640 * 384 + 384 * 384 + 3 * 1024 * 384)},
      {"bench-b", 8192 * 512 + 512 + 8 * (1024 + 768 * 512 + 512 * 512 + 3 * 1408 * 512)},
      {"bench-c", 512 * 384 + 384 + 6 * (768 + 4 * 384 * 384 + 3 * 1024 * 384)},
  };
  for (const auto& [name, count] : known) EXPECT_EQ(total(preset(name)), count) << name;
  EXPECT_EQ(std::size(known), preset_names().size()) << "a preset without a known total";
}

}  // namespace
}  // namespace transept
