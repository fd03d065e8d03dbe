#include "train/routers.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace transept {

void add_batch(const RouterLoads& batch, double weight, RouterLoads& step) {
  for (const auto& [name, from] : batch) {
    RouterStatistics& to = step[name];
    to.load.resize(from.load.size());
    for (size_t i = 0; i < from.load.size(); ++i) to.load[i] += from.load[i];
    to.balance_loss += weight * from.balance_loss;
    to.z_loss += weight * from.z_loss;
    to.entropy += weight * from.entropy;
    to.rows += from.rows;
    to.pairs += from.pairs;
    to.dropped += from.dropped;
  }
}

void append_router_metrics(const RouterLoads& step, Metrics& record) {
  if (step.empty()) return;
  double balance = 0, z = 0;
  for (const auto& [name, s] : step) {
    record.emplace_back(name + ".max_violation", max_violation(s.load));
    record.emplace_back(name + ".router_entropy", s.entropy);
    record.emplace_back(name + ".dropped",
                        static_cast<double>(s.dropped) / static_cast<double>(std::max<int64_t>(1, s.pairs)));
    record.emplace_back(name + ".idle_experts", static_cast<double>(idle_experts(s.load)));
    balance += s.balance_loss;
    z += s.z_loss;
  }
  record.emplace_back("balance_loss", balance);
  record.emplace_back("z_loss", z);
}

void update_selection_biases(const RouterLoads& step, Model& model) {
  const auto update = [&](const StackSpec& stack, const std::string& prefix) {
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      const MoeSpec& moe = stack.layers[i].moe;
      if (!moe || !moe.selection_bias) continue;
      const std::string name = prefix + "layers." + std::to_string(i) + ".ffn";
      const std::vector<int64_t>& load = step.at(name).load;
      const Parameters::Entry* const entry = model.parameters().find(name + ".router.selection_bias");
      TRANSEPT_CHECK(entry && entry->size == static_cast<int64_t>(load.size()));
      const int64_t total = std::accumulate(load.begin(), load.end(), int64_t{0});
      const std::span<float> bias = model.parameters().values(*entry);
      for (size_t e = 0; e < load.size(); ++e) {
        // Against the mean without a division: load < total / experts.
        const int64_t excess = load[e] * static_cast<int64_t>(load.size()) - total;
        const int sign = (excess < 0) - (excess > 0);
        bias[e] += static_cast<float>(moe.bias_update_speed) * static_cast<float>(sign);
      }
    }
  };
  update(model.spec(), "");
  update(model.spec().encoder, "encoder.");
}

std::optional<std::string> RouterWatch::step(const RouterLoads& loads) {
  for (const auto& [name, s] : loads) {
    std::vector<int64_t>& sum = loads_[name];
    sum.resize(s.load.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += s.load[i];
  }
  if (loads.empty() || ++steps_ < kSteps) return std::nullopt;
  std::string text;
  for (const auto& [name, sum] : loads_) {
    const int64_t idle = idle_experts(sum);
    if (idle > idle_[name]) {
      text += (text.empty() ? "" : "; ") + name + ": " + std::to_string(idle) + " of " + std::to_string(sum.size()) +
              " experts got no token";
    }
    idle_[name] = idle;
  }
  steps_ = 0;
  loads_.clear();
  if (text.empty()) return std::nullopt;
  return text + " in the last " + std::to_string(kSteps) +
         " steps; raise moe.router_aux_loss_coef, or set moe.selection_bias";
}

}  // namespace transept
