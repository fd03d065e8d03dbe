// What training does for routers beside their losses: statistics over a step's batches, the rule that moves selection
// biases by load (arXiv:2408.15664 algorithm 1; DeepSeek-V3, arXiv:2412.19437 section 2.1.2), and a watch for experts
// that no token reaches any more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/model.h"
#include "train/metrics.h"

namespace transept {

// By the layer's network: "layers.3.ffn".
using RouterLoads = std::map<std::string, RouterStatistics>;

// Adds a batch that is `weight` of its step: counts add up, losses and entropy are weighted.
void add_batch(const RouterLoads& batch, double weight, RouterLoads& step);

// Of each layer: "layers.3.ffn.max_violation" (busiest expert's load over the mean, minus 1), ".router_entropy" (nats),
// ".dropped" (share of the choices) and ".idle_experts"; then "balance_loss" and "z_loss", summed over layers.
void append_router_metrics(const RouterLoads& step, Metrics& record);

// Every bias moves by its layer's bias_update_speed: up where the expert's load was below the mean, down where above.
void update_selection_biases(const RouterLoads& step, Model& model);

class RouterWatch {
 public:
  // Names the layers in which an expert got no token in the last kSteps steps and did in the kSteps before, or since
  // the start.
  std::optional<std::string> step(const RouterLoads& loads);

  static constexpr int64_t kSteps = 100;

 private:
  int64_t steps_ = 0;
  std::map<std::string, std::vector<int64_t>> loads_;
  std::map<std::string, int64_t> idle_;  // at the end of the last kSteps
};

}  // namespace transept
