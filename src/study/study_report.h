// The page of a study: its question, key figures, charts with their spread, every mean as a table, what was equal and
// what differed, and how to repeat it. All of it comes from results.json.
#pragma once

#include <string>

#include "base/json.h"
#include "study/report.h"

namespace transept {

// InputError where `results` has another form than study_document.h tells.
ReportPage study_report_page(const Json& results);

// "5.102 ± 0.031": the spread to two digits, the mean as far as those tell it. Without a spread (NaN) the mean alone.
std::string format_spread(double mean, double sd);

}  // namespace transept
