// The quotients of training_cost.h.
#include "plan/training_cost.h"

#include <algorithm>

#include "base/check.h"

namespace transept {
namespace {

constexpr double kSecondsPerHour = 3600;

// Of one query at the end of the context, without the causal mask.
double unmasked_attention(const std::vector<LayerSpec>& layers, int64_t context, int64_t source_context) {
  double flops = 0;
  for (const LayerSpec& layer : layers) {
    std::visit(
        [&](const auto& attention) {
          int64_t keys = context;
          if (attention.sliding_window > 0)
            keys = std::min(keys, layer.causal ? attention.sliding_window : 2 * attention.sliding_window - 1);
          if (layer.cross_attention) keys += source_context;
          flops += static_cast<double>(attention.flops_per_query_key()) * static_cast<double>(keys);
        },
        layer.attention);
  }
  return flops;
}

double peak(const MachineType& machine) {
  const double flops = machine.training_peak().flops_per_second;
  TRANSEPT_CHECK(flops > 0);
  return flops;
}

}  // namespace

double train_flops_per_token(const ArchSpec& spec, const Plan& plan, FlopCount count) {
  const double linear = static_cast<double>(plan.flops.linear_forward_per_token);
  switch (count) {
    case FlopCount::kLinear:
      return 3 * linear;
    case FlopCount::kCausal:
      return plan.flops.train_per_token;
    case FlopCount::kUnmasked:
      return 3 * (linear + unmasked_attention(spec.layers, plan.context, plan.source_context) +
                  unmasked_attention(spec.encoder.layers, plan.source_context, 0));
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
