// What a plan costs on a type of machine: training, and serving (training_cost.h, roofline.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "plan/machine_type.h"
#include "plan/roofline.h"
#include "plan/training_cost.h"

namespace transept {

struct EconomicsOptions {
  MachineType machine;
  int64_t machines = 1;         // that train
  int64_t tensor_parallel = 1;  // machines that hold one model when it serves
  int64_t train_tokens = 0;     // 0: compute-optimal, Plan::Chinchilla::tokens
  FlopCount flop_count = FlopCount::kCausal;
  double mfu = kTypicalMfu;  // of the FLOPs that flop_count counts
  // In place of mfu, at most one: the machine-hours that a run took, or its tokens a second on all machines.
  std::optional<double> machine_hours, tokens_per_second;
};

struct Economics {
  MachineType machine;
  MachineType::Peak training_peak;
  FlopCount flop_count = FlopCount::kCausal;
  TrainingRun run;
  double mfu = 0;
  std::array<double, kFlopCountNames.size()> mfu_by_count{};  // the same run by the other ways to count
  TrainingCost training;
  Serving serving;
};

// InputError as make_plan and plan_serving; and for a number of machines, tokens, hours or an MFU out of range, all at
// once.
Economics make_economics(const ArchSpec& spec, const PlanOptions& plan, const EconomicsOptions& options);

Json to_json(const Economics& economics);

// For a person at a terminal.
std::string to_text(const Economics& economics);

}  // namespace transept
