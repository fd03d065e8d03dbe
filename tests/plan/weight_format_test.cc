// Sizes of weights in GGUF's types against files that people publish.
#include "plan/weight_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/plan.h"
#include "spec/presets.h"

namespace transept {
namespace {

int64_t weights(const ArchSpec& spec, const std::string& dtype) {
  return make_plan(spec, {.context = 64, .dtype = dtype}).memory.weights;
}

// LLaMA-2 7B's files as llama.cpp wrote them are this much longer than their tensors in every type: names and
// vocabulary.
constexpr int64_t kMetadata = 741056;

TEST(WeightFormat, FilesOfLlama2) {
  const struct {
    const char* name;
    int64_t file;
  } known[] = {
      {"q8_0", 7161089728}, {"q6_k", 5529194176}, {"q5_k_m", 4783156928}, {"q4_k_m", 4081004224}, {"q4_0", 3825807040}};
  const ArchSpec spec = preset("llama-2-7b");
  for (const auto& k : known) EXPECT_EQ(weights(spec, k.name), k.file - kMetadata) << k.name;
}

TEST(WeightFormat, PlainTypesAreBytesAnElement) {
  const ArchSpec spec = preset("gpt2");
  EXPECT_EQ(weights(spec, "f32"), 4 * 124439808);
  EXPECT_EQ(weights(spec, "bf16"), 2 * 124439808);
  EXPECT_EQ(weights(spec, "f8"), 124439808);
}

TEST(WeightFormat, WhatDoesNotFitFallsBack) {
  const auto parameter = [](std::vector<int64_t> shape, Part part) {
    ParamDecl decl;
    decl.shape = std::move(shape);
    decl.part = part;
    return decl;
  };
  const ArchSpec untied = preset("llama-2-7b"), tied = preset("gpt2");
  const auto bytes = [](const ArchSpec& spec, const ParamDecl& decl, const char* format) {
    return WeightFormat::find(format)->bytes(spec, decl).value();
  };
  EXPECT_EQ(bytes(untied, parameter({2, 256}, Part::kFfn), "q4_k"), 2 * 144);
  EXPECT_EQ(bytes(untied, parameter({2, 96}, Part::kFfn), "q4_k"), 2 * 3 * 34);  // q8_0
  EXPECT_EQ(bytes(untied, parameter({2, 10}, Part::kFfn), "q4_k"), 2 * 10 * 2);  // f16
  EXPECT_EQ(bytes(untied, parameter({256}, Part::kNorm), "q4_k"), 256 * 4);
  EXPECT_EQ(bytes(untied, parameter({2, 256}, Part::kHead), "q2_k"), 2 * 210);
  EXPECT_EQ(bytes(untied, parameter({2, 256}, Part::kHead), "q8_0"), 2 * 8 * 34);
  EXPECT_EQ(bytes(untied, parameter({2, 256}, Part::kEmbedding), "q2_k"), 2 * 84);
  EXPECT_EQ(bytes(tied, parameter({2, 256}, Part::kEmbedding), "q2_k"), 2 * 210);
  EXPECT_EQ(WeightFormat::find("q4_k_x"), nullptr);
}

// A cached row is quantized by itself; the weights' K types leave it f16.
TEST(WeightFormat, TypesOfACache) {
  const ArchSpec spec = preset("llama-3-8b");
  const auto plan = [&](const std::string& dtype, const std::string& kv) {
    return make_plan(spec, {.context = 100, .dtype = dtype, .kv_dtype = kv});
  };
  EXPECT_EQ(plan("bf16", "q8_0").kv_cache.bytes, 100 * 32 * 2 * (1024 / 32 * 34));
  EXPECT_EQ(plan("q4_k_m", "").kv_dtype, "f16");
  EXPECT_EQ(plan("bf16", "").kv_dtype, "bf16");
  EXPECT_THROW(plan("bf16", "q4_k"), InputError);
}

}  // namespace
}  // namespace transept
