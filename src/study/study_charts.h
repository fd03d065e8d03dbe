// The charts of a study drawn from its rows: means over seeds with their spread, curves with bands, maps.
#pragma once

#include <vector>

#include "study/report.h"
#include "study/study_document.h"

namespace transept {

// What stands for the chart in the page. Rows that differ in an axis which the chart does not name are told apart by
// that axis. A chart that cannot be drawn (no row has its metric or axis) gives one line that says why.
std::vector<ReportBlock> study_chart_blocks(const StudyDocument& study, const StudyChart& chart);

}  // namespace transept
