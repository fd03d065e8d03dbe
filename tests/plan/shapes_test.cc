// One model with other attention, and shapes within a budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "plan/budget.h"
#include "plan/comparison.h"
#include "plan/variants.h"
#include "spec/presets.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t cached(const ArchSpec& spec, int64_t context) {
  return make_plan(spec, {.context = context, .dtype = "bf16"}).kv_cache.bytes;
}

TEST(Variants, CachesOfLlama3) {
  std::vector<std::string> names;
  std::vector<int64_t> elements;
  for (const Variant& v : attention_variants(preset("llama-3-8b"))) {
    names.push_back(v.name);
    elements.push_back(make_plan(v.spec, {.context = 8192}).kv_cache.elements_per_token / 32);
    EXPECT_EQ(v.spec.layers.size(), 32u);
  }
  EXPECT_THAT(names, ElementsAre("mha", "gqa", "mqa", "mla", "window"));
  // 2 x heads x 128; a quarter of it; one head; 4 x 128 + 64; as the model.
  EXPECT_THAT(elements, ElementsAre(8192, 2048, 256, 576, 2048));
}

TEST(Variants, OfOtherModels) {
  const auto variants = attention_variants(preset("gpt2"));
  ASSERT_EQ(variants.size(), 5u);
  EXPECT_EQ(variants[1].name, "gqa");
  EXPECT_EQ(std::get<GqaSpec>(variants[1].spec.layers[0].attention).num_key_value_heads, 3);
  EXPECT_EQ(variants[4].name, "window");
  EXPECT_EQ(cached(variants[4].spec, 1024), cached(variants[0].spec, 256));
  // A model of latents: multi-head attention of its value width, and itself.
  const auto latent = attention_variants(preset("deepseek-v2"));
  ASSERT_EQ(latent.size(), 5u);
  EXPECT_EQ(make_plan(latent[0].spec, {.context = 64}).kv_cache.elements_per_token, 60 * 2 * 128 * 128);
  EXPECT_EQ(make_plan(latent[3].spec, {.context = 64}).kv_cache.elements_per_token, 34560);
  EXPECT_EQ(attention_variants(preset("t5-small")).size(), 4u);
}

TEST(Comparison, AColumnAFigure) {
  const std::vector<Plan> models = {make_plan(preset("llama-2-7b"), {}), make_plan(preset("deepseek-v3"), {}),
                                    make_plan(preset("t5-small"), {}), make_plan(preset("gemma-2-9b"), {})};
  const ComparisonTable table = comparison_table(models);
  ASSERT_EQ(table.rows.size(), 4u);
  const auto cell = [&](size_t row, const std::string& column) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].name == column) return table.rows[row][c].text;
    }
    return std::string("no such column");
  };
  EXPECT_EQ(cell(0, "parameters"), "6,738,415,616");
  EXPECT_EQ(cell(0, "attention"), "MHA");
  EXPECT_EQ(cell(0, "context"), "4,096");
  EXPECT_EQ(cell(1, "attention"), "MLA");
  EXPECT_EQ(cell(1, "experts"), "8 of 256 + shared");
  EXPECT_EQ(cell(1, "position"), "rope, yarn");
  EXPECT_EQ(cell(2, "layers"), "6 + 6");
  EXPECT_EQ(cell(3, "window"), "4,096 in 21 layers");
  EXPECT_EQ(cell(3, "norm"), "rmsnorm, sandwich");
  const std::string text = comparison_text(models);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(text, HasSubstr("671,026,419,200  37,552,297,472"));
}

TEST(Budget, EveryShapeKeepsToIt) {
  const ArchSpec base = preset("llama-3-8b");
  for (const double wanted : {2e8, 1e9, 8e9, 7e10}) {
    const auto found = search_budget(base, {.parameters = wanted}, {.context = 2048});
    ASSERT_FALSE(found.empty());
    for (const Candidate& c : found) {
      EXPECT_LE(static_cast<double>(c.plan.parameters.total), wanted);
      EXPECT_DOUBLE_EQ(c.used, static_cast<double>(c.plan.parameters.total) / wanted);
      const auto& a = std::get<GqaSpec>(c.spec.layers[0].attention);
      EXPECT_EQ(a.num_attention_heads, 4 * a.num_key_value_heads);
      EXPECT_EQ(a.head_dim, 128);
      EXPECT_EQ(c.spec.hidden_size, 128 * a.num_attention_heads);
    }
    EXPECT_GT(found[0].used, 0.9);
  }
  // The model's own size leads back to its own shape.
  const auto again = search_budget(base, {.parameters = 8030261248}, {.context = 2048});
  EXPECT_EQ(again[0].spec.layers.size(), 32u);
  EXPECT_EQ(again[0].spec.hidden_size, 4096);
  EXPECT_EQ(again[0].plan.parameters.total, 8030261248);
}

TEST(Budget, FlopsMemoryAndSeveralAtOnce) {
  const auto by_flops = search_budget(preset("gpt2"), {.training_flops = 1e19}, {.context = 1024});
  for (const Candidate& c : by_flops) EXPECT_LE(c.plan.chinchilla.train_flops_counted, 1e19);
  const auto by_memory = search_budget(preset("gpt2"), {.training_memory = 0x1p33}, {.context = 1024, .batch = 4});
  for (const Candidate& c : by_memory) EXPECT_LE(c.plan.memory.peak_training, int64_t{1} << 33);
  const auto both = search_budget(preset("llama-2-7b"), {.parameters = 3e9, .inference_memory = 0x1p32},
                                  {.context = 4096, .dtype = "bf16"});
  for (const Candidate& c : both) {
    EXPECT_LE(c.plan.parameters.total, 3000000000);
    EXPECT_LE(c.plan.memory.peak_inference, int64_t{1} << 32);
  }
}

// Experts are searched too, and layers keep their pattern: dense ones first, windows in turn.
TEST(Budget, PatternsAndExperts) {
  const auto moe =
      search_budget(preset("deepseek-v2-lite"), {.parameters = 3e9, .active_parameters = 1e9}, {.context = 2048});
  for (const Candidate& c : moe) {
    EXPECT_FALSE(c.spec.layers.front().moe);
    EXPECT_TRUE(c.spec.layers.back().moe);
    EXPECT_LE(c.plan.parameters.active, 1000000000);
  }
  for (const Candidate& c : search_budget(preset("gemma-2-2b"), {.parameters = 4e9}, {.context = 2048})) {
    for (size_t i = 0; i < c.spec.layers.size(); ++i)
      EXPECT_EQ(window_of(c.spec.layers[i]) > 0, i % 2 == 0) << c.spec.name;
  }
}

TEST(Budget, RefusalsSayWhy) {
  const auto error = [](auto f) {
    try {
      f();
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(error([] { search_budget(preset("llama-3-8b"), {.parameters = 1e6}, {}); }),
              HasSubstr("budget parameters: the smallest model of this form, 1 layers of width 512, needs "));
  const Budget budget =
      parse_budget({"parameters=7B", "memory=24GiB", "flops=1e21", "active=350M", "training-memory=80GB"});
  EXPECT_DOUBLE_EQ(budget.parameters, 7e9);
  EXPECT_DOUBLE_EQ(budget.inference_memory, 24 * 0x1p30);
  EXPECT_DOUBLE_EQ(budget.training_flops, 1e21);
  EXPECT_DOUBLE_EQ(budget.active_parameters, 3.5e8);
  EXPECT_DOUBLE_EQ(budget.training_memory, 8e10);
  const std::string all = error([] {
    parse_budget({"params=7B", "parameters=", "parameters=-1", "memory=7B", "flops=1e999", "flops=nan", "flops=0x10",
                  "active=1B", "active=2B"});
  });
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 7) << all;
  EXPECT_THAT(all, HasSubstr("\"params\" is no budget; allowed: parameters=N"));
  EXPECT_THAT(all, HasSubstr("budget active: is given twice"));
}

}  // namespace
}  // namespace transept
