// The page of `transept scale`: isoFLOP curves of one law (Hoffmann et al. 2022, arXiv:2203.15556, figure 3 and section
// 3.3), the compute-optimal lines of all of them with their constants and errors, over-training (plan/break_even.h),
// and a fit beside its runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plan/break_even.h"
#include "plan/scaling_fit.h"
#include "plan/scaling_laws.h"
#include "plan/scaling_runs.h"
#include "study/report.h"

namespace transept {

struct ScalingReport {
  std::string given;  // what was asked: "5.76e+23 FLOPs"
  struct Row {
    ScalingLaw law;
    Allocation optimum;
  };
  std::vector<Row> rows;
  std::string set;                      // name of the law whose curves are shown: one of the rows, with a loss
  std::optional<double> smaller;        // parameters of a smaller model
  std::optional<double> served_tokens;  // to be served by the cheapest model
  LifetimeCost cost;
  std::optional<ScalingFit> fit;
  std::vector<ScalingRun> runs;  // of the fit
  std::string runs_name;         // the file
  std::string command;
  Machine machine;
};

ReportPage scaling_report_page(const ScalingReport& report);
void write_scaling_report(const std::filesystem::path& path, const ScalingReport& report);

}  // namespace transept
