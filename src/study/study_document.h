// The results of a study as its results.json holds them, read and checked: what was trained and measured under one
// protocol with one axis changed at a time, every run a cell, every mean a row of the summary, and the charts that show
// them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "study/machine.h"

namespace transept {

// Of axis names to values, each a string or a number. In a chart's `where` a list of values too: any of them.
using StudyAxes = Json;

struct StudyCurve {
  std::vector<double> x, y;  // equally long; a y of null is NaN
};

struct StudyMap {
  std::string name;
  std::vector<std::string> rows, columns;
  std::vector<double> weights;  // row-major [rows, columns]
};

// One run: a model and a measurement at one seed.
struct StudyCell {
  StudyAxes axes;
  int64_t seed = 0;
  std::map<std::string, double> metrics;  // NaN: it gave no number
  std::map<std::string, StudyCurve> curves;
  std::vector<StudyMap> maps;
  std::string refused;  // why there is nothing to measure; empty: there is
};

// Over the seeds of one combination; sd is NaN where n is 1.
struct StudySummary {
  StudyAxes axes;
  std::string metric;
  double mean = 0, sd = 0;
  int64_t n = 0;
};

enum class StudyChartKind { kLines, kBars, kCurve, kMaps };

struct StudyChart {
  StudyChartKind kind = StudyChartKind::kLines;
  std::string title, caption;
  std::string metric;  // of lines and bars; of a curve its name; of maps what a weight is
  std::string x;       // axis of lines and bars
  std::vector<std::string> series;
  StudyAxes where;
  bool log_x = false, log_y = false;
  std::string x_label, y_label;
};

// The mean of one summary row; its ratio over another's; or how much of the way from one row's mean to another's it has
// come.
struct StudyFigure {
  std::string label, metric, note;
  StudyAxes where;
  StudyAxes over;      // null: no ratio
  StudyAxes from, to;  // null: no way
};

struct StudyModel {
  StudyAxes axes;
  Json differs;  // dotted spec key to value
  Json spec;
  double parameters = 0, train_flops_per_token = 0;
};

// What was asserted equal before anything was measured.
struct StudyEquality {
  std::string what, among, value;
  double count = 0;
};

struct StudyDocument {
  std::string name, title, question, size, data, command;
  std::vector<std::string> protocol;
  std::vector<StudyEquality> equal;
  std::vector<StudyModel> models;
  std::vector<StudyCell> cells;
  std::vector<StudySummary> summary;
  std::vector<StudyChart> charts;
  std::vector<StudyFigure> figures;
  Machine machine;
};

// InputError with every place that has another form. Absent parts are empty.
StudyDocument read_study(const Json& results);

// A value of an axis as text.
std::string axis_text(const Json& value);

// "position = rope, context = 128".
std::string axes_text(const StudyAxes& axes);

// Whether the axes have the values that `where` asks for.
bool matches(const StudyAxes& axes, const StudyAxes& where);

}  // namespace transept
