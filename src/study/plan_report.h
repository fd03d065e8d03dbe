// Pages of plans: one model in full, or many side by side.
#pragma once

#include <string>
#include <vector>

#include "plan/comparison.h"
#include "study/report.h"

namespace transept {

// The caller adds the command and the machine.
ReportPage plan_page(const Plan& plan);

// `models` may be any number; few are drawn as bars and lines by name, many as points.
ReportPage comparison_page(const std::vector<Plan>& models, const std::string& title);

}  // namespace transept
