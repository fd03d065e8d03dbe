// Models side by side: one row a model, one column a figure; the table that terminals and pages show.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

namespace transept {

struct ComparisonTable {
  struct Column {
    std::string name;
    bool numeric = false;
    bool brief = true;  // also where there is room for little
  };
  // `number` is what a numeric column sorts by.
  struct Value {
    std::string text;
    double number = std::numeric_limits<double>::quiet_NaN();
  };
  std::vector<Column> columns;
  std::vector<std::vector<Value>> rows;
};

ComparisonTable comparison_table(const std::vector<Plan>& models);

// The brief columns, for a terminal.
std::string comparison_text(const std::vector<Plan>& models);

}  // namespace transept
