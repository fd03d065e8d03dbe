// The page of one training run: its curves, the plan beside what was measured, samples, the spec, and how to repeat it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "study/report.h"

namespace transept {

struct TrainingReport {
  Json spec;  // spec_to_json: `name` heads the page
  // As `transept plan --json` prints it: parameters.total,
  // memory.{weights,gradients,optimizer,activations,peak_training} in bytes, flops.train_per_token. A number that is
  // absent shows as "–".
  Json plan;
  // Measured beside it, under the same paths where the plan has one: parameters.total, memory.*, flops.train_per_step;
  // and flops_per_second, tokens_per_second (the run's medians), seconds.
  Json measured;
  double tokens_per_step = 0;      // turns the plan's FLOPs a token into FLOPs a step
  std::vector<Json> metrics = {};  // read_metrics
  std::vector<Sample> samples = {};
  std::string data = {};  // what it was trained on, for the subtitle
  std::string command = {};
  Machine machine = {};
};

ReportPage training_report_page(const TrainingReport& report);
void write_training_report(const std::filesystem::path& path, const TrainingReport& report);

// The number at a dotted path ("memory.weights"), NaN when there is none.
double number_at(const Json& document, std::string_view path);

}  // namespace transept
