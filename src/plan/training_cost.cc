// The quotients of training_cost.h.
#include "plan/training_cost.h"

#include "base/check.h"

namespace transept {
namespace {

constexpr double kSecondsPerHour = 3600;

double peak(const MachineType& machine) {
  const double flops = machine.training_peak().flops_per_second;
  TRANSEPT_CHECK(flops > 0);
  return flops;
}

}  // namespace

double train_flops_per_token(const FlopCounts& flops, FlopCount count) {
  const double linear = static_cast<double>(flops.linear_forward_per_token);
  switch (count) {
    case FlopCount::kLinear:
      return 3 * linear;
    case FlopCount::kCausal:
      return flops.train_per_token;
    case FlopCount::kUnmasked:
      return 3 * (linear + flops.attention_forward_per_token_full);
  }
  TRANSEPT_CHECK(false);
}

TrainingCost training_cost(const TrainingRun& run, const MachineType& machine, double mfu) {
  TrainingCost cost;
  const double rate = peak(machine) * mfu, machines = static_cast<double>(run.machines);
  cost.flops = run.flops_per_token * static_cast<double>(run.tokens);
  cost.machine_hours = cost.flops / rate / kSecondsPerHour;
  cost.hours = cost.machine_hours / machines;
  cost.tokens_per_second = rate * machines / run.flops_per_token;
  cost.usd = cost.machine_hours * machine.usd_per_hour;
  cost.kilowatt_hours = cost.machine_hours * machine.watts / 1000;
  return cost;
}

double mfu_of_machine_hours(const TrainingRun& run, const MachineType& machine, double machine_hours) {
  return run.flops_per_token * static_cast<double>(run.tokens) / (machine_hours * kSecondsPerHour * peak(machine));
}

double mfu_of_tokens_per_second(const TrainingRun& run, const MachineType& machine, double tokens_per_second) {
  return run.flops_per_token * tokens_per_second / (static_cast<double>(run.machines) * peak(machine));
}

}  // namespace transept
