// A step on many ranks: shares that add up to the whole, ZeRO's table, what each kind of parallelism sends, refusals.
#include "plan/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/plan.h"
#include "spec/presets.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

Plan plan_of(const ArchSpec& spec, const ParallelLayout& layout, const std::string& dtype = "bf16") {
  return make_plan(spec, {.context = 1024, .batch = 64, .train_dtype = dtype, .parallel = layout});
}
double sent(const Plan& plan, const std::string& kind) {
  for (const Traffic& t : plan.parallel.traffic) {
    if (t.kind == kind) return t.bytes;
  }
  return 0;
}

// arXiv:1910.02054, figure 1: a parameter is 2 + 2 + 12 bytes; a model of 7.5 B on 64 replicas.
TEST(Parallel, ZeroDealsOutState) {
  const ArchSpec spec = preset("llama-2-7b");
  const double n = 6738415616.0, r = 64;
  const double want[] = {16 * n, 4 * n + 12 * n / r, 2 * n + 14 * n / r, 16 * n / r};
  for (int64_t zero = 0; zero <= 3; ++zero) {
    const Plan p = plan_of(spec, {.data = 64, .zero = zero});
    ASSERT_EQ(p.parallel.stages.size(), 1u);
    const StageMemory& s = p.parallel.stages[0];
    double state = static_cast<double>(s.total() - s.activations);
    if (zero == 3) state -= 2.0 * 2 * 202383360;  // two layers' weights are gathered at a time
    EXPECT_NEAR(state, want[zero], 1e-6 * want[zero]) << zero;
  }
  // A ring's all-reduce sends 2 (r - 1) / r of the gradients; dealt out, as much; with weights gathered twice, half as
  // much again (section 7).
  EXPECT_DOUBLE_EQ(sent(plan_of(spec, {.data = 64}), "data"), 2 * (63.0 / 64) * 2 * n);
  EXPECT_DOUBLE_EQ(sent(plan_of(spec, {.data = 64, .zero = 2}), "data"), 2 * (63.0 / 64) * 2 * n);
  EXPECT_DOUBLE_EQ(sent(plan_of(spec, {.data = 64, .zero = 3}), "data"), 3 * (63.0 / 64) * 2 * n);
}

// Every element lives on the ranks of exactly one share: norms on all of them, tied tables on both ends of a pipeline.
TEST(Parallel, SharesAddUp) {
  for (const char* name : {"llama-2-7b", "gpt2", "gemma-2-2b", "bloom-560m", "deepseek-v2-lite", "gpt-j-6b"}) {
    const ArchSpec spec = preset(name);
    int64_t sharded = 0, whole = 0;
    for (const ParamDecl& decl : spec.declare().decls())
      (decl.use.shard == Shard::kNone ? whole : sharded) += elements(decl).value();
    const int64_t vocabulary_padding = spec.vocab_size % 2 * spec.hidden_size * (spec.tie_word_embeddings ? 1 : 2);
    const Plan two = plan_of(spec, {.tensor = 2});
    EXPECT_EQ(2 * two.parallel.stages[0].parameters, sharded + vocabulary_padding + 2 * whole) << name;

    const Plan stages = plan_of(spec, {.pipeline = 3, .micro_batches = 4});
    int64_t all = 0, layers = 0;
    for (const StageMemory& s : stages.parallel.stages) {
      EXPECT_EQ(s.first_layer, layers);
      layers += s.layers;
      all += s.parameters;
    }
    EXPECT_EQ(layers, static_cast<int64_t>(spec.layers.size()));
    EXPECT_EQ(all, stages.parameters.total + (spec.tie_word_embeddings ? stages.parameters.embedding : 0)) << name;
  }
}

TEST(Parallel, ExpertsLiveOnReplicas) {
  const ArchSpec spec = preset("mixtral-8x7b");
  int64_t experts = 0;
  for (const ParamDecl& decl : spec.declare().decls()) experts += decl.experts > 1 ? elements(decl).value() : 0;
  const Plan p = plan_of(spec, {.data = 8, .expert = 8});
  EXPECT_EQ(p.parallel.stages[0].parameters, p.parameters.total - experts + experts / 8);
  // Each token's two choices there and back, forward and backward, to seven ranks of eight.
  EXPECT_DOUBLE_EQ(sent(p, "expert"), 4.0 * (7.0 / 8) * 32 * 2 * (64.0 / 8 * 1024) * 4096 * 2);
  // Gradients of experts have no other replica.
  EXPECT_DOUBLE_EQ(sent(p, "data"), 2 * (7.0 / 8) * 2 * static_cast<double>(p.parameters.total - experts));
}

TEST(Parallel, APipelineHoldsMicroBatchesInFlight) {
  const ArchSpec spec = preset("llama-2-7b");
  const Plan p = plan_of(spec, {.pipeline = 4, .micro_batches = 8});
  ASSERT_EQ(p.parallel.stages.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(p.parallel.stages[static_cast<size_t>(i)].in_flight, 4 - i);
  EXPECT_GT(p.parallel.stages[1].activations, p.parallel.stages[2].activations);
  EXPECT_DOUBLE_EQ(p.parallel.bubble, 3.0 / 11);
  EXPECT_DOUBLE_EQ(sent(p, "pipeline"), 2.0 * 64 * 1024 * 4096 * 2);
  EXPECT_EQ(p.parallel.peak(), std::max(p.parallel.stages[0].total(), p.parallel.stages[3].total()));
  // One stage, all at once, is what one process holds.
  const Plan one = plan_of(spec, {.zero = 1}, "f32");
  EXPECT_EQ(one.parallel.stages[0].total(), one.memory.peak_training);
}

TEST(Parallel, TensorAndContextSplitActivations) {
  const ArchSpec spec = preset("llama-2-7b");
  const int64_t whole = plan_of(spec, {.zero = 1}).parallel.stages[0].activations;
  EXPECT_EQ(plan_of(spec, {.tensor = 4}).parallel.stages[0].activations, (whole + 3) / 4);
  // Five passes of each of 64 sublayers, and two at each end, of three quarters of the activations.
  EXPECT_DOUBLE_EQ(sent(plan_of(spec, {.tensor = 4}), "tensor"), (3.0 / 4) * 64 * 1024 * 4096 * 2 * (5 * 64 + 4));
  // Keys and values of the 512 tokens of each of 64 sequences, once forward and twice backward.
  EXPECT_DOUBLE_EQ(sent(plan_of(spec, {.context = 2}), "context"), 3.0 * 64 * 512 * 262144 * 2);
  // A window of 4,096 needs the ranks of 4,096 tokens before its own.
  const Plan window =
      make_plan(preset("mistral-7b"), {.context = 32768, .train_dtype = "bf16", .parallel = {.context = 16}});
  EXPECT_DOUBLE_EQ(sent(window, "context"), 3.0 * 2048 * 2 * 65536 * 2);
}

TEST(Parallel, RefusesWhatDoesNotDivide) {
  const auto error = [](const char* name, const ParallelLayout& layout) {
    try {
      plan_of(preset(name), layout);
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(error("llama-3-8b", {.tensor = 16}),
              HasSubstr("tensor-parallel: 16 does not divide num_key_value_heads, 8"));
  EXPECT_THAT(error("llama-3-8b", {.data = 3}), HasSubstr("data-parallel: 3 does not divide batch, 64"));
  EXPECT_THAT(error("llama-3-8b", {.pipeline = 33}), HasSubstr("33 stages for 32 layers"));
  EXPECT_THAT(error("llama-3-8b", {.expert = 2}), HasSubstr("expert-parallel: the model has no experts"));
  EXPECT_THAT(error("mixtral-8x7b", {.data = 4, .expert = 8}),
              HasSubstr("expert-parallel: 8 does not divide data-parallel, 4"));
  EXPECT_THAT(error("llama-3-8b", {.context = 3}), HasSubstr("context-parallel: 3 does not divide context, 1024"));
  EXPECT_THAT(error("llama-3-8b", {.data = 64, .micro_batches = 2}), HasSubstr("a replica's share of the batch, 1"));
  EXPECT_THAT(error("llama-3-8b", {.data = -1, .zero = 4}), HasSubstr("zero: got 4; allowed: 0 to 3"));
  EXPECT_THAT(error("t5-small", {.pipeline = 2}), HasSubstr("planned for models of one stack"));
  EXPECT_THAT(error("llama-3-8b", {.data = 3, .tensor = 16}), HasSubstr("\n"));  // both at once
}

}  // namespace
}  // namespace transept
