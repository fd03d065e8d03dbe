// Time and cost of a training run, and its model FLOPs utilization (MFU): the FLOPs that the model asks for, over those
// that its machines could do at their dense peak (arXiv:2204.02311 section 4.1). Recomputed activations are no work
// that the model asks for.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "plan/machine_type.h"
#include "plan/plan.h"

namespace transept {

// Which FLOPs a token costs in training; three times the forward pass in each.
enum class FlopCount {
  kLinear,    // 6 x every matrix that multiplies the token: most published figures
  kCausal,    // and attention over the keys that each token sees: Plan::Flops::train_per_token
  kUnmasked,  // and attention over the whole context, masked or not (arXiv:2204.02311 appendix B: 6 N + 12 L H Q T)
};
inline constexpr std::array<std::string_view, 3> kFlopCountNames{"linear", "causal", "unmasked"};

double train_flops_per_token(const FlopCounts& flops, FlopCount count);

// What large runs reach: the middle of the published ones of 7 billion parameters and more in
// tests/plan/training_cost_test.cc, which span 0.26 to 0.51.
inline constexpr double kTypicalMfu = 0.4;

struct TrainingRun {
  double flops_per_token = 0;
  int64_t tokens = 0;
  int64_t machines = 1;
};

struct TrainingCost {
  double flops = 0;
  double machine_hours = 0;
  double hours = 0;  // of the clock
  double tokens_per_second = 0;
  double usd = 0;             // 0: the price is not known
  double kilowatt_hours = 0;  // of the machines alone, at their stated power; 0: not known
};

// mfu in (0, 1].
TrainingCost training_cost(const TrainingRun& run, const MachineType& machine, double mfu);

// The same the other way round: from the machine-hours of the whole run, or from the tokens a second of all machines.
double mfu_of_machine_hours(const TrainingRun& run, const MachineType& machine, double machine_hours);
double mfu_of_tokens_per_second(const TrainingRun& run, const MachineType& machine, double tokens_per_second);

}  // namespace transept
