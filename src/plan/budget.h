// Shapes that fill a budget: the search over depth, width, heads and experts that stands before any training run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "spec/arch_spec.h"

namespace transept {

// What is not asked for is 0.
struct Budget {
  double parameters = 0;
  double active_parameters = 0;
  double training_flops = 0;    // of a run over 20 tokens a parameter (Plan::Chinchilla::train_flops_counted)
  double training_memory = 0;   // bytes: peak_training at the options' batch and context
  double inference_memory = 0;  // bytes: peak_inference
};

// "parameters=7B", "active=3B", "flops=1e21", "training-memory=80GiB", "memory=24GiB", with amounts as
// base/quantity.h reads them. InputError lists every text that is none of these.
Budget parse_budget(const std::vector<std::string>& texts);

struct Candidate {
  ArchSpec spec;
  Plan plan;
  double used = 0;  // of the tightest budget, at most 1
};

// The base gives every kind and ratio: head_dim, KV heads a query head, ffn and expert widths against hidden_size, the
// pattern of its layers. For each depth, and number of experts where the base has them, the widest model that keeps to
// all budgets. Ordered: those that use at least `kWellUsed` of what the best one uses, nearest first to the base's
// ratio of width to depth, then the rest by use. At most `most`. InputError when nothing fits: it names the smallest
// model that was tried and what it needs.
inline constexpr double kWellUsed = 0.95;
std::vector<Candidate> search_budget(const ArchSpec& base, const Budget& budget, const PlanOptions& options,
                                     size_t most = 12);

}  // namespace transept
