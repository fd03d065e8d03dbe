// Times of serving, worked out by hand.
#include "plan/roofline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "plan/economics.h"
#include "spec/presets.h"
#include "support/tolerances.h"

namespace transept {
namespace {

void expect_close(double got, double right) { EXPECT_NEAR(got, right, tolerance::kDouble * right); }

PlanOptions at(int64_t context, int64_t batch = 1) { return {.context = context, .batch = batch, .dtype = "bf16"}; }

// LLaMA-2-7B: 6,607,343,616 parameters beside the input embedding, 6,607,077,376 of them in matrices; a token's cache
// is 524,288 bytes, the row of its embedding 8,192. An A100 does 312e12 FLOP/s and reads 2.039e12 bytes a second.
constexpr double kWeights = 2.0 * 6607343616, kLinear = 2.0 * 6607077376, kCache = 524288, kRow = 8192;
constexpr double kPeak = 312e12, kBandwidth = 2.039e12;
constexpr double kAttention = 4.0 * 4096 * 32;  // FLOPs a key

TEST(Roofline, DecodeByHand) {
  const ArchSpec spec = preset("llama-2-7b");
  const Serving s = plan_serving(spec, at(4096, 8), find_machine_type("a100-80gb"), 1);
  ASSERT_TRUE(s.decode);
  const PassTime& step = s.decode->step;
  EXPECT_EQ(step.flops, 8 * (kLinear + 4096 * kAttention));
  EXPECT_EQ(step.bytes, kWeights + 8 * (4096 * kCache + kRow));
  expect_close(step.compute_seconds, step.flops / kPeak);
  expect_close(step.memory_seconds, step.bytes / kBandwidth);
  EXPECT_FALSE(step.compute_binds());
  EXPECT_EQ(step.seconds, step.memory_seconds);
  expect_close(s.decode->tokens_per_second, 8 / step.seconds);
  expect_close(s.decode->tokens_per_second_per_sequence, 1 / step.seconds);
  expect_close(s.decode->usd_per_million_tokens, 3.4 / 3600 / (8 / step.seconds) * 1e6);
  // A sequence's cache takes 1.05 ms, its operations 0.05 ms: compute never binds.
  EXPECT_FALSE(s.compute_bound_batch);
}

// Behind one token, 13.2e9 bytes of weights take 6.481 ms, and a sequence adds 42.355 µs of operations but only 0.261
// µs of bytes: 6481 / (42.355 - 0.261) = 153.97.
TEST(Roofline, BatchWhereComputeBinds) {
  const ArchSpec spec = preset("llama-2-7b");
  const MachineType a100 = find_machine_type("a100-80gb");
  EXPECT_EQ(plan_serving(spec, at(1), a100, 1).compute_bound_batch, 154);
  EXPECT_FALSE(plan_serving(spec, at(1, 153), a100, 1).decode->step.compute_binds());
  EXPECT_TRUE(plan_serving(spec, at(1, 154), a100, 1).decode->step.compute_binds());
}

TEST(Roofline, PrefillByHand) {
  const ArchSpec spec = preset("llama-2-7b");
  const Prefill p = plan_serving(spec, at(512, 2), find_machine_type("a100-80gb"), 1).prefill;
  // (512 + 1) / 2 keys in the mean; the head, 32,000 x 4,096, for one token of 512.
  EXPECT_EQ(p.pass.flops, 2 * (512 * (kLinear + 256.5 * kAttention) - 511 * 2.0 * 32000 * 4096));
  EXPECT_EQ(p.pass.bytes, kWeights + 2 * 512 * kCache);
  EXPECT_TRUE(p.pass.compute_binds());
  expect_close(p.seconds_to_first_token, p.pass.flops / kPeak);
  expect_close(p.tokens_per_second, 1024 / p.seconds_to_first_token);
  expect_close(p.usd_per_million_tokens, 3.4 / 3600 / p.tokens_per_second * 1e6);
}

TEST(Roofline, LargestBatch) {
  const ArchSpec spec = preset("llama-2-7b");
  const MachineType a100 = find_machine_type("a100-80gb");
  const Serving s = plan_serving(spec, at(4096), a100, 1);
  PlanOptions options = at(4096);
  options.memory_bytes = a100.memory_bytes;
  EXPECT_EQ(s.largest_batch, make_plan(spec, options).serving.largest_batch);
  EXPECT_EQ(s.largest_batch, 33);  // (80 GiB - 12.5 GiB of weights) / 2 GiB, less the workspace
  ASSERT_TRUE(s.largest);
  EXPECT_EQ(s.largest->batch, 33);
  expect_close(s.largest->tokens_per_second, 33 / ((kWeights + 33 * (4096 * kCache + kRow)) / kBandwidth));
  // 13.5 GB of weights, and 16 GiB.
  EXPECT_EQ(plan_serving(preset("llama-2-13b"), at(4096), find_machine_type("t4"), 1).largest_batch, 0);
}

// Eight A100: an eighth of both, and 64 all-reduces of a row of 8,192 bytes, of which 7/4 go through 300e9 bytes a
// second each way.
TEST(Roofline, TensorParallel) {
  const ArchSpec spec = preset("llama-2-7b");
  const MachineType a100 = find_machine_type("a100-80gb");
  const PassTime step = plan_serving(spec, at(4096), a100, 8).decode->step;
  expect_close(step.memory_seconds, (kWeights + 4096 * kCache + kRow) / 8 / kBandwidth);
  expect_close(step.communication_seconds, 64 * 1.75 * 8192 / 300e9);
  expect_close(step.seconds, step.memory_seconds + step.communication_seconds);
  // Parallel sublayers are added up before they are reduced: one a layer.
  const PassTime pythia = plan_serving(preset("pythia-6.9b"), at(1024), a100, 2).decode->step;
  expect_close(pythia.communication_seconds, 32 * 1.0 * 8192 / 300e9);
  EXPECT_THROW(plan_serving(spec, at(4096), find_machine_type("m3-max"), 2), InputError);
}

// A batch reads the experts that it is expected to choose: 8 (1 - (3/4)^4) of Mixtral's at four sequences.
TEST(Roofline, ExpertsOfABatch) {
  const ArchSpec spec = preset("mixtral-8x7b");
  const double one = plan_serving(spec, at(64), find_machine_type("a100-80gb"), 2).decode->step.bytes,
               four = plan_serving(spec, at(64, 4), find_machine_type("a100-80gb"), 2).decode->step.bytes;
  const double expert = 2.0 * 3 * 4096 * 14336 * 32, touched = 8 * (1 - 0.75 * 0.75 * 0.75 * 0.75);
  const double own = 64 * 131072 + 8192;                         // cache and embedding of a sequence
  EXPECT_NEAR(four - one, 3 * own + (touched - 2) * expert, 1);  // experts are rounded to whole elements
  // A prompt of 64 reads them all.
  const Prefill p = plan_serving(spec, at(64), find_machine_type("a100-80gb"), 2).prefill;
  EXPECT_NEAR(p.pass.bytes - one + own, 64 * 131072 + (8 * (1 - std::pow(0.75, 64)) - 2) * expert, 1);
}

// T5-small with a source of 100: its tokens pass 6 encoder layers of 3,145,728 weights and the cross-attentions' keys
// and values (524,288 a layer), and see one another; then one target token: 3,670,016 weights a layer, the head of
// 512 x 32,128, itself and the source.
TEST(Roofline, SourceOfAnEncoderDecoder) {
  PlanOptions options = at(10);
  options.source_context = 100;
  const Serving s = plan_serving(preset("t5-small"), options, find_machine_type("a100-80gb"), 1);
  const double source = 2.0 * 6 * (3145728 + 524288) + 4.0 * 512 * 6 * 100;
  const double target = 2.0 * (6 * 3670016 + 512 * 32128) + 4.0 * 512 * 6 * (1 + 100);
  EXPECT_EQ(s.prefill.tokens, 100);
  EXPECT_EQ(s.prefill.pass.flops, 100 * source + target);
  EXPECT_TRUE(s.decode);
}

TEST(Roofline, EncodersDoNotDecode) {
  const ArchSpec spec = preset("bert-base");
  const Plan plan = make_plan(spec, at(128, 4));
  const Serving s = plan_serving(spec, at(128, 4), find_machine_type("t4"), 1);
  EXPECT_FALSE(s.decode);
  EXPECT_EQ(s.prefill.pass.flops, 4 * 128 * plan.flops.forward_per_token);
}

// A working set that a cache holds is read at the cache's rate, and each layer has its own time.
TEST(Roofline, CachesAndLayers) {
  MachineType machine;
  machine.name = "m";
  machine.flops_per_second["f32"] = 1e12;
  machine.memory_bytes = int64_t{1} << 34;
  machine.memory_bytes_per_second = 1e10;
  machine.read_rates = {{int64_t{1} << 25, 1e11}, {int64_t{1} << 30, 1e10}};
  machine.layer_seconds = 1e-5;
  const Decode d = *plan_serving(preset("small-1m"), {.context = 16}, machine, 1).decode;  // 4 MB of weights
  expect_close(d.step.memory_seconds, d.step.bytes / 1e11);
  expect_close(d.step.layer_seconds, 1e-5 * static_cast<double>(preset("small-1m").layers.size()));
  expect_close(d.step.seconds, d.step.memory_seconds + d.step.layer_seconds);
}

// One row reaches 1e10 FLOP/s and three rows three times that; many reach the peak. The batch where compute binds asks
// for the peak alone.
TEST(Roofline, FewRows) {
  MachineType machine;
  machine.name = "m";
  machine.flops_per_second["f32"] = 1e12;
  machine.row_flops_per_second["f32"] = 1e10;
  machine.memory_bytes = int64_t{1} << 34;
  machine.memory_bytes_per_second = 1e12;
  const ArchSpec spec = preset("small-1m");
  const Serving one = plan_serving(spec, {.context = 16}, machine, 1),
                three = plan_serving(spec, {.context = 16, .batch = 3}, machine, 1);
  expect_close(one.decode->step.compute_seconds, one.decode->step.flops / 1e10);
  expect_close(three.decode->step.compute_seconds, one.decode->step.compute_seconds);
  EXPECT_TRUE(one.decode->step.compute_binds());
  expect_close(plan_serving(spec, {.context = 200}, machine, 1).prefill.pass.compute_seconds,
               plan_serving(spec, {.context = 200}, machine, 1).prefill.pass.flops / 1e12);
  const std::optional<int64_t> batch = one.compute_bound_batch;
  machine.row_flops_per_second.clear();
  EXPECT_EQ(plan_serving(spec, {.context = 16}, machine, 1).compute_bound_batch, batch);
}

// Machine-hours of a run give its MFU, whichever FLOPs it is stated in.
TEST(Economics, MfuOfARun) {
  const ArchSpec spec = preset("llama-7b");
  EconomicsOptions options;
  options.machine = find_machine_type("a100-80gb");
  options.machines = 2048;
  options.train_tokens = 1000000000000;
  options.flop_count = FlopCount::kLinear;
  options.machine_hours = 82432;
  const Economics e = make_economics(spec, {}, options);
  expect_close(e.training.machine_hours, 82432);
  expect_close(e.training.hours, 82432.0 / 2048);
  EXPECT_EQ(e.mfu_by_count[0], e.mfu);
  EXPECT_GT(e.mfu_by_count[1], e.mfu_by_count[0]);
  EXPECT_GT(e.mfu_by_count[2], e.mfu_by_count[1]);
  options.flop_count = FlopCount::kUnmasked;
  expect_close(make_economics(spec, {}, options).mfu, e.mfu_by_count[2]);
  options.machine_hours = 10;  // MFU would be above 1
  EXPECT_THROW(make_economics(spec, {}, options), InputError);
}

}  // namespace
}  // namespace transept
