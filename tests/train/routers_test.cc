// What training does for routers: statistics of a step, the rule of selection biases, the watch for idle experts.
#include "train/routers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "support/models.h"
#include "train/trainer.h"

namespace transept {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

ArchSpec moe_spec(const Json& moe) {
  Json experts = {{"num_experts", 4}, {"num_experts_per_tok", 2}};
  for (const auto& [key, value] : moe.items()) experts[key] = value;
  return spec_from_json({{"vocab_size", 40},
                         {"hidden_size", 16},
                         {"max_position_embeddings", 32},
                         {"initializer_range", 0.2},
                         {"attention", {{"num_attention_heads", 2}}},
                         {"ffn", {{"intermediate_size", 24}}},
                         {"moe", experts},
                         {"layers", {{{"moe", {{"num_experts", 0}}}}, {{"repeat", 2}}}}},
                        "spec");
}

Batch batch_of(int64_t sequences, uint64_t seed) {
  Batch b;
  b.layout = equal_sequences(sequences, 8);
  b.target_count = 8 * sequences;
  b.tokens = random_ids(b.target_count, 40, seed);
  b.targets = random_ids(b.target_count, 40, seed + 1);
  return b;
}

TEST(Routers, AStepAddsUpItsBatches) {
  RouterLoads step;
  RouterStatistics a, b;
  a.load = {4, 0}, a.balance_loss = 1, a.z_loss = 2, a.entropy = 0.4, a.rows = 2, a.pairs = 4, a.dropped = 1;
  b.load = {6, 6}, b.balance_loss = 2, b.z_loss = 4, b.entropy = 0.8, b.rows = 6, b.pairs = 12, b.dropped = 3;
  add_batch({{"layers.1.ffn", a}}, 0.25, step);
  add_batch({{"layers.1.ffn", b}}, 0.75, step);
  Metrics record;
  append_router_metrics(step, record);
  const Metrics expected{{"layers.1.ffn.max_violation", 10.0 / 8 - 1},
                         {"layers.1.ffn.router_entropy", 0.7},
                         {"layers.1.ffn.dropped", 0.25},
                         {"layers.1.ffn.idle_experts", 0},
                         {"balance_loss", 1.75},
                         {"z_loss", 3.5}};
  ASSERT_EQ(record.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(record[i].first, expected[i].first);
    EXPECT_NEAR(record[i].second, expected[i].second, 1e-12) << record[i].first;
  }
}

TEST(Routers, BiasesMoveAgainstTheLoad) {
  Model model(moe_spec({{"selection_bias", true}, {"bias_update_speed", 0.5}}));
  RouterLoads step;
  step["layers.1.ffn"].load = {10, 0, 5, 5};
  step["layers.2.ffn"].load = {1, 1, 1, 0};
  update_selection_biases(step, model);
  update_selection_biases(step, model);
  const auto biases = [&](const char* name) {
    const auto values = model.parameters().values(*model.parameters().find(name));
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_THAT(biases("layers.1.ffn.router.selection_bias"), ElementsAre(FloatEq(-1), FloatEq(1), 0, 0));
  EXPECT_THAT(biases("layers.2.ffn.router.selection_bias"),
              ElementsAre(FloatEq(-1), FloatEq(-1), FloatEq(-1), FloatEq(1)));
  EXPECT_EQ(model.parameters().find("layers.0.ffn.router.selection_bias"), nullptr);
}

// The optimizer leaves the biases to the rule: no gradient, no decay.
TEST(Routers, OnlyTheRuleMovesBiases) {
  ThreadPool pool(2);
  for (const double speed : {0.0, 0.125}) {
    const ArchSpec spec = moe_spec({{"selection_bias", true}, {"bias_update_speed", speed}});
    const auto model = random_model(spec, true);
    const Parameters::Entry& entry = *model->parameters().find("layers.2.ffn.router.selection_bias");
    const auto now = [&] {
      return std::vector<float>(model->parameters().values(entry).begin(), model->parameters().values(entry).end());
    };
    const std::vector<float> before = now();
    AdamWOptions adamw;
    adamw.weight_decay = 0.5;
    Trainer trainer(*model, pool, {.adamw = adamw});
    const Batch batch = batch_of(3, 1);
    const StepResult r = trainer.step({&batch, 1}, 0, 1e-2);
    const std::vector<int64_t>& load = r.routers.at("layers.2.ffn").load;
    for (size_t e = 0; e < load.size(); ++e) {
      const double move = load[e] < 12 ? speed : load[e] > 12 ? -speed : 0;
      EXPECT_EQ(now()[e], before[e] + static_cast<float>(move));
    }
  }
}

// Two tokens a choice, over all micro-batches; with and without a second forward pass.
TEST(Routers, EveryChoiceCountsOnce) {
  ThreadPool pool(2);
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    const auto model = random_model(moe_spec({{"router_aux_loss_coef", 0.1}}), true);
    Trainer trainer(*model, pool, {.adamw = {}, .recompute = recompute});
    const std::vector<Batch> batches{batch_of(3, 1), batch_of(1, 7)};
    const StepResult r = trainer.accumulate(batches, 0);
    ASSERT_EQ(r.routers.size(), 2u);
    for (const auto& [name, s] : r.routers) {
      EXPECT_EQ(std::accumulate(s.load.begin(), s.load.end(), int64_t{0}), 64) << name;
      EXPECT_EQ(s.pairs, 64);
      EXPECT_EQ(s.rows, 32);
      EXPECT_EQ(s.dropped, 0);
      EXPECT_GT(s.balance_loss, 0.05);
    }
  }
}

TEST(Routers, CapacityAndJitterActInTrainingOnly) {
  ThreadPool pool(2);
  const Batch batch = batch_of(4, 3);
  const auto plain = random_model(moe_spec({}), true);
  const auto strict = random_model(moe_spec({{"capacity_factor", 0.5}, {"router_jitter_noise", 0.3}}), true);
  Trainer a(*plain, pool, {}), b(*strict, pool, {});
  EXPECT_EQ(a.accumulate({&batch, 1}, 0).routers.at("layers.1.ffn").dropped, 0);
  EXPECT_GE(b.accumulate({&batch, 1}, 0).routers.at("layers.1.ffn").dropped, 32);
  const ForwardCall call{.tokens = batch.tokens, .layout = batch.layout, .dropout = {}, .observe = {}};
  const Var x = plain->hidden(a.inference_context(), call), y = strict->hidden(b.inference_context(), call);
  EXPECT_TRUE(std::equal(x.value.data(), x.value.data() + x.value.size(), y.value.data()));
}

TEST(RouterWatch, NamesLayersWhoseExpertsDied) {
  RouterWatch watch;
  RouterLoads busy, idle;
  busy["layers.1.ffn"].load = {1, 0, 3};
  busy["layers.2.ffn"].load = {1, 2, 3};
  idle = busy;
  idle["layers.1.ffn"].load = {0, 2, 3};
  const auto run = [&](const RouterLoads& loads) {
    std::optional<std::string> said;
    for (int64_t i = 0; i < RouterWatch::kSteps; ++i) {
      if (const auto s = watch.step(loads)) said = s;
    }
    return said;
  };
  RouterLoads mixed = busy;
  mixed["layers.1.ffn"].load[1] = 1;
  EXPECT_EQ(run(mixed), std::nullopt);
  const auto said = run(idle);
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, HasSubstr("layers.1.ffn: 1 of 3 experts got no token"));
  EXPECT_THAT(*said, testing::Not(HasSubstr("layers.2.ffn")));
  EXPECT_EQ(run(idle), std::nullopt) << "said once";
  EXPECT_EQ(run(mixed), std::nullopt);
  EXPECT_TRUE(run(busy)) << "died again";
  RouterWatch dense;
  for (int64_t i = 0; i < 2 * RouterWatch::kSteps; ++i) EXPECT_EQ(dense.step({}), std::nullopt);
}

}  // namespace
}  // namespace transept
