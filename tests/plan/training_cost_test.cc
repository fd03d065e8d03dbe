// Published training runs: their machine-hours give the utilization that the same quotient gives by hand, and back.
#include "plan/training_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "spec/presets.h"
#include "support/tolerances.h"

namespace transept {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

// Machine-hours: arXiv:2302.13971 table 15, arXiv:2307.09288 table 2, the model card of Llama 3.1 405B,
// arXiv:2211.02001 table 1 (BLOOM), arXiv:2304.01373 table 4 (Pythia: 299.9 billion tokens).
TEST(TrainingCost, PublicRuns) {
  constexpr int64_t kPythiaTokens = 299892736000;
  const struct {
    const char* preset;
    const char* machine;
    int64_t tokens;
    double machine_hours;
    const char* mfu;
  } runs[] = {
      {"llama-7b", "a100-80gb", 1000000000000, 82432, "42.8"},
      {"llama-13b", "a100-80gb", 1000000000000, 135168, "50.8"},
      {"llama-30b", "a100-80gb", 1400000000000, 530432, "45.6"},
      {"llama-65b", "a100-80gb", 1400000000000, 1022362, "47.6"},
      {"llama-2-7b", "a100-80gb", 2000000000000, 184320, "38.3"},
      {"llama-2-13b", "a100-80gb", 2000000000000, 368640, "37.2"},
      {"llama-2-70b", "a100-80gb", 2000000000000, 1720320, "42.7"},
      {"llama-3.1-405b", "h100-sxm", 15600000000000, 30840000, "34.4"},
      {"bloom", "a100-80gb", 366000000000, 1082990, "31.8"},
      {"pythia-70m", "a100-40gb", kPythiaTokens, 510, "14.0"},
      {"pythia-160m", "a100-40gb", kPythiaTokens, 1030, "19.2"},
      {"pythia-410m", "a100-40gb", kPythiaTokens, 2540, "22.3"},
      {"pythia-1b", "a100-40gb", kPythiaTokens, 4830, "30.1"},
      {"pythia-1.4b", "a100-40gb", kPythiaTokens, 7120, "29.5"},
      {"pythia-2.8b", "a100-40gb", kPythiaTokens, 14240, "29.8"},
      {"pythia-6.9b", "a100-40gb", kPythiaTokens, 33500, "31.8"},
      {"pythia-12b", "a100-40gb", kPythiaTokens, 72300, "25.7"},
  };
  for (const auto& r : runs) {
    const ArchSpec spec = preset(r.preset);
    const MachineType machine = find_machine_type(r.machine);
    const TrainingRun run{train_flops_per_token(make_plan(spec, {}).flops, FlopCount::kLinear), r.tokens, 1};
    const double mfu = mfu_of_machine_hours(run, machine, r.machine_hours);
    EXPECT_EQ(percent(mfu), r.mfu) << r.preset;
    EXPECT_NEAR(training_cost(run, machine, mfu).machine_hours, r.machine_hours, tolerance::kDouble * r.machine_hours)
        << r.preset;
  }
}

// arXiv:2204.02311, table 1 and appendix B: 118 layers of 18,432 with 48 heads of 256, 238,300 tokens a second on 6,144
// chips: 45.7 % without attention, and 46.2 % with 12 L H Q T of it.
TEST(TrainingCost, Palm540b) {
  const ArchSpec spec = spec_from_json({{"extends", "palm-8b"},
                                        {"name", "palm-540b"},
                                        {"hidden_size", 18432},
                                        {"num_hidden_layers", 118},
                                        {"attention", {{"num_attention_heads", 48}}},
                                        {"ffn", {{"intermediate_size", 73728}}}},
                                       "palm-540b");
  const Plan plan = make_plan(spec, {.context = 2048});
  EXPECT_EQ(plan.parameters.total / 10000000, 54035);  // 540.35 billion
  const MachineType tpu = find_machine_type("tpu-v4");
  TrainingRun run{train_flops_per_token(plan.flops, FlopCount::kLinear), 780000000000, 6144};
  EXPECT_EQ(percent(mfu_of_tokens_per_second(run, tpu, 238300)), "45.7");
  const double linear = run.flops_per_token;
  run.flops_per_token = train_flops_per_token(plan.flops, FlopCount::kUnmasked);
  EXPECT_EQ(run.flops_per_token - linear, 12.0 * 118 * 48 * 256 * 2048);
  EXPECT_EQ(percent(mfu_of_tokens_per_second(run, tpu, 238300)), "46.2");
}

// The three counts beside one another: a causal token sees (T + 1) / 2 keys in the mean; without the mask
// all of them, whatever the window.
TEST(TrainingCost, Counts) {
  const ArchSpec llama = preset("llama-2-7b");
  const Plan plan = make_plan(llama, {.context = 4095});
  const double linear = train_flops_per_token(plan.flops, FlopCount::kLinear),
               causal = train_flops_per_token(plan.flops, FlopCount::kCausal),
               unmasked = train_flops_per_token(plan.flops, FlopCount::kUnmasked);
  EXPECT_EQ(linear, 6.0 * 6607077376);  // all but the embedding table and the norms
  EXPECT_EQ(causal - linear, 12.0 * 32 * 4096 * 2048);
  EXPECT_EQ(unmasked - linear, 12.0 * 32 * 4096 * 4095);

  const ArchSpec mistral = preset("mistral-7b");
  const Plan windowed = make_plan(mistral, {.context = 8192});
  EXPECT_EQ(train_flops_per_token(windowed.flops, FlopCount::kUnmasked) -
                train_flops_per_token(windowed.flops, FlopCount::kLinear),
            12.0 * 32 * 4096 * 8192);

  // Nothing is masked in an encoder, and an encoder-decoder's cross-attention sees the whole source.
  const ArchSpec bert = preset("bert-base"), t5 = preset("t5-small");
  const Plan whole = make_plan(bert, {}), both = make_plan(t5, {.context = 10, .source_context = 100});
  EXPECT_EQ(train_flops_per_token(whole.flops, FlopCount::kUnmasked),
            train_flops_per_token(whole.flops, FlopCount::kCausal));
  EXPECT_EQ(
      train_flops_per_token(both.flops, FlopCount::kUnmasked) - train_flops_per_token(both.flops, FlopCount::kLinear),
      12.0 * 6 * 512 * (100 + 10 + 100));
}

// 1e9 FLOPs a token, 3.6e9 tokens: 3.6e18 FLOPs, at half of 1e12 a second 7.2e6 machine-seconds.
TEST(TrainingCost, ByHand) {
  MachineType machine;
  machine.flops_per_second["f32"] = 1e12;
  machine.usd_per_hour = 0.25;
  machine.watts = 500;
  const TrainingRun run{1e9, 3600000000, 4};
  const TrainingCost cost = training_cost(run, machine, 0.5);
  EXPECT_EQ(cost.flops, 3.6e18);
  EXPECT_EQ(cost.machine_hours, 2000);
  EXPECT_EQ(cost.hours, 500);
  EXPECT_EQ(cost.tokens_per_second, 2000);
  EXPECT_EQ(cost.usd, 500);
  EXPECT_EQ(cost.kilowatt_hours, 1000);
  EXPECT_EQ(mfu_of_machine_hours(run, machine, 2000), 0.5);
  EXPECT_EQ(mfu_of_tokens_per_second(run, machine, 2000), 0.5);
}

}  // namespace
}  // namespace transept
