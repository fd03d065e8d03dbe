#include "study/study_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/format_number.h"

namespace transept {
namespace {

// Rows of the summary and cells: both have axes.
template <class Row>
using Rows = std::vector<const Row*>;

const Json* axis_of(const StudyAxes& axes, const std::string& name) {
  const auto found = axes.find(name);
  return found == axes.end() ? nullptr : &*found;
}

std::string quoted(const std::string& name) { return "“" + name + "”"; }

// The rows that the chart asks for, of those that have its metric (`measured`, so called in the reason).
template <class Row>
struct Selection {
  Rows<Row> rows;
  std::string missing;  // why there are none
};

template <class Row>
Selection<Row> select(const Rows<Row>& measured, const StudyChart& chart, const std::string& what) {
  if (measured.empty()) return {{}, "nothing was measured of " + what};
  std::set<std::string> named(chart.series.begin(), chart.series.end());
  if (!chart.x.empty()) named.insert(chart.x);
  for (auto i = chart.where.begin(); i != chart.where.end(); ++i) named.insert(i.key());
  for (const std::string& axis : named) {
    if (std::none_of(measured.begin(), measured.end(), [&](const Row* r) { return axis_of(r->axes, axis); }))
      return {{}, fmt::format("no row of {} has the axis {}", what, quoted(axis))};
  }
  Selection<Row> found;
  for (const Row* row : measured) {
    if (matches(row->axes, chart.where) && (chart.x.empty() || axis_of(row->axes, chart.x))) found.rows.push_back(row);
  }
  if (found.rows.empty()) found.missing = "no row has the values that it asks for";
  return found;
}

// The axes that tell the series apart: those that the chart names, then those in which the rows differ otherwise.
template <class Row>
std::vector<std::string> series_axes(const Rows<Row>& rows, const StudyChart& chart) {
  std::vector<std::string> axes = chart.series;
  for (const Row* row : rows) {
    for (auto i = row->axes.begin(); i != row->axes.end(); ++i) {
      const std::string& name = i.key();
      if (name == chart.x || std::find(axes.begin(), axes.end(), name) != axes.end()) continue;
      const bool differs = std::any_of(rows.begin(), rows.end(), [&](const Row* other) {
        const Json* value = axis_of(other->axes, name);
        return !value || *value != *i;
      });
      if (differs) axes.push_back(name);
    }
  }
  return axes;
}

// "rope, none": words speak for themselves, a number needs its axis.
std::string series_name(const StudyAxes& axes, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    const Json* value = axis_of(axes, name);
    if (!value) continue;
    if (!out.empty()) out += ", ";
    out += value->is_string() ? value->get<std::string>() : name + " " + axis_text(*value);
  }
  return out;
}

// By series, in the order in which they first come.
template <class Row>
std::vector<std::pair<std::string, Rows<Row>>> by_series(const Rows<Row>& rows, const StudyChart& chart) {
  const std::vector<std::string> axes = series_axes(rows, chart);
  std::vector<std::pair<std::string, Rows<Row>>> groups;
  for (const Row* row : rows) {
    const std::string name = series_name(row->axes, axes);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(row);
  }
  return groups;
}

std::string with_spread(std::string caption, const char* mark, int64_t fewest, int64_t most) {
  if (!caption.empty()) caption += ' ';
  if (most <= 1) return caption + "One seed, no spread.";
  const std::string seeds = fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  return caption + fmt::format("{}: mean ± standard deviation over {} seeds.", mark, seeds);
}

std::string with_spread(const Rows<StudySummary>& rows, const std::string& caption, const char* mark) {
  const auto [fewest, most] =
      std::minmax_element(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->n < b->n; });
  return with_spread(caption, mark, (*fewest)->n, (*most)->n);
}

const std::string& or_else(const std::string& text, const std::string& otherwise) {
  return text.empty() ? otherwise : text;
}

Selection<StudySummary> summary_rows(const StudyDocument& study, const StudyChart& chart) {
  Rows<StudySummary> measured;
  for (const StudySummary& row : study.summary) {
    if (row.metric == chart.metric) measured.push_back(&row);
  }
  return select(measured, chart, "the metric " + quoted(chart.metric));
}

ReportBlock left_out(const StudyChart& chart, const std::string& why) {
  return Paragraph{fmt::format("{} is left out: {}.", quoted(chart.title), why)};
}

LineChart empty_lines(const StudyChart& chart, const std::string& x_label) {
  return {chart.title,
          {},
          {or_else(chart.x_label, x_label), chart.log_x},
          {or_else(chart.y_label, chart.metric), chart.log_y},
          {},
          true};
}

ReportBlock lines_of(const StudyDocument& study, const StudyChart& chart) {
  const Selection<StudySummary> selected = summary_rows(study, chart);
  if (selected.rows.empty()) return left_out(chart, selected.missing);
  for (const StudySummary* row : selected.rows) {
    const Json& x = *axis_of(row->axes, chart.x);
    if (!x.is_number())
      return left_out(chart, fmt::format("{} is no number on the axis {}", quoted(axis_text(x)), quoted(chart.x)));
  }
  LineChart lines = empty_lines(chart, chart.x);
  for (auto& [name, rows] : by_series(selected.rows, chart)) {
    const auto x_of = [&](const StudySummary* row) { return axis_of(row->axes, chart.x)->get<double>(); };
    Rows<StudySummary> sorted = rows;
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) { return x_of(a) < x_of(b); });
    Series series{or_else(name, lines.y.label), {}, {}};
    const bool spread = std::any_of(sorted.begin(), sorted.end(), [](const auto* r) { return r->n > 1; });
    for (const StudySummary* row : sorted) {
      series.x.push_back(x_of(row));
      series.y.push_back(row->mean);
      if (!spread) continue;
      series.lower.push_back(row->mean - row->sd);
      series.upper.push_back(row->mean + row->sd);
    }
    lines.series.push_back(std::move(series));
  }
  lines.caption = with_spread(selected.rows, chart.caption, "Bands");
  return lines;
}

ReportBlock bars_of(const StudyDocument& study, const StudyChart& chart) {
  const Selection<StudySummary> selected = summary_rows(study, chart);
  if (selected.rows.empty()) return left_out(chart, selected.missing);
  const bool spread = std::any_of(selected.rows.begin(), selected.rows.end(), [](const auto* r) { return r->n > 1; });
  BarChart bars{
      chart.title, with_spread(selected.rows, chart.caption, "Whiskers"), or_else(chart.y_label, chart.metric), {}, {}};
  std::vector<Json> categories;
  for (const StudySummary* row : selected.rows) {
    const Json& x = *axis_of(row->axes, chart.x);
    if (std::find(categories.begin(), categories.end(), x) != categories.end()) continue;
    categories.push_back(x);
    bars.categories.push_back(x.is_string() ? axis_text(x) : or_else(chart.x_label, chart.x) + " " + axis_text(x));
  }
  for (const auto& [name, rows] : by_series(selected.rows, chart)) {
    BarSeries series{or_else(name, bars.value_label), std::vector<double>(categories.size(), NAN), {}};
    if (spread) series.errors.assign(categories.size(), NAN);
    for (const StudySummary* row : rows) {
      const auto category = std::find(categories.begin(), categories.end(), *axis_of(row->axes, chart.x));
      const size_t i = static_cast<size_t>(category - categories.begin());
      series.values[i] = row->mean;
      if (spread) series.errors[i] = row->sd;
    }
    bars.series.push_back(std::move(series));
  }
  return bars;
}

// Mean ± sd over the runs at each x that any of them has.
Series mean_curve(const std::string& name, const Rows<StudyCell>& cells, const std::string& curve) {
  std::map<double, std::vector<double>> points;
  for (const StudyCell* cell : cells) {
    const StudyCurve& c = cell->curves.at(curve);
    for (size_t i = 0; i < c.x.size(); ++i) {
      if (std::isfinite(c.x[i])) points[c.x[i]].push_back(c.y[i]);
    }
  }
  Series series{name, {}, {}};
  for (const auto& [x, ys] : points) {
    double sum = 0, squares = 0;
    for (const double y : ys) sum += y;
    const double n = static_cast<double>(ys.size()), mean = sum / n;
    for (const double y : ys) squares += (y - mean) * (y - mean);
    series.x.push_back(x);
    series.y.push_back(mean);
    if (cells.size() < 2) continue;
    const double sd = ys.size() > 1 ? std::sqrt(squares / (n - 1)) : NAN;
    series.lower.push_back(mean - sd);
    series.upper.push_back(mean + sd);
  }
  return series;
}

ReportBlock curve_of(const StudyDocument& study, const StudyChart& chart) {
  Rows<StudyCell> measured;
  for (const StudyCell& cell : study.cells) {
    if (cell.curves.count(chart.metric)) measured.push_back(&cell);
  }
  const Selection<StudyCell> selected = select(measured, chart, "the curve " + quoted(chart.metric));
  if (selected.rows.empty()) return left_out(chart, selected.missing);
  LineChart lines = empty_lines(chart, "");
  size_t fewest = selected.rows.size(), most = 0;
  for (const auto& [name, cells] : by_series(selected.rows, chart)) {
    lines.series.push_back(mean_curve(or_else(name, lines.y.label), cells, chart.metric));
    thin(lines.series.back());
    fewest = std::min(fewest, cells.size());
    most = std::max(most, cells.size());
  }
  lines.caption = with_spread(chart.caption, "Bands", static_cast<int64_t>(fewest), static_cast<int64_t>(most));
  return lines;
}

// The first rows and columns of a map that is larger than a page shows.
HeatMap shown_part(const StudyMap& map, size_t rows, size_t columns) {
  HeatMap out{map.name, {}};
  for (size_t r = 0; r < rows; ++r) {
    const auto row = map.weights.begin() + static_cast<std::ptrdiff_t>(r * map.columns.size());
    out.weights.insert(out.weights.end(), row, row + static_cast<std::ptrdiff_t>(columns));
  }
  return out;
}

std::vector<std::string> shown_labels(const std::vector<std::string>& labels) {
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(labels.size(), kMaxHeatMapSide); ++i) out.push_back(visible_whitespace(labels[i]));
  return out;
}

// The maps of one run that have these rows and columns.
HeatMaps maps_of_labels(const StudyCell& cell, const StudyMap& like, const std::string& title,
                        const StudyChart& chart) {
  HeatMaps maps{title,
                chart.caption,
                or_else(chart.y_label, "Query"),
                or_else(chart.x_label, "Key"),
                or_else(chart.metric, "Weight"),
                shown_labels(like.rows),
                shown_labels(like.columns),
                {}};
  size_t left = 0;
  for (const StudyMap& map : cell.maps) {
    if (map.rows != like.rows || map.columns != like.columns) continue;
    if (maps.maps.size() == kMaxHeatMaps) {
      ++left;
    } else {
      maps.maps.push_back(shown_part(map, maps.rows.size(), maps.columns.size()));
    }
  }
  maps.per_row = maps_per_row(maps.maps);
  const auto say = [&](const std::string& sentence) { maps.caption += (maps.caption.empty() ? "" : " ") + sentence; };
  say("The darker or brighter a cell, the larger its weight: its shade follows the square root. Of seed " +
      std::to_string(cell.seed) + ".");
  if (maps.rows.size() < like.rows.size() || maps.columns.size() < like.columns.size())
    say(fmt::format("Of {} by {} cells the first {} by {} are shown.", like.rows.size(), like.columns.size(),
                    maps.rows.size(), maps.columns.size()));
  if (left > 0) say(fmt::format("{} more maps lie in results.json.", left));
  return maps;
}

// A block for each run at its first seed, and for each set of labels in it.
std::vector<ReportBlock> maps_of(const StudyDocument& study, const StudyChart& chart) {
  Rows<StudyCell> measured;
  for (const StudyCell& cell : study.cells) {
    const bool another_seed =
        std::any_of(measured.begin(), measured.end(), [&](const StudyCell* other) { return other->axes == cell.axes; });
    if (!cell.maps.empty() && !another_seed) measured.push_back(&cell);
  }
  const Selection<StudyCell> selected = select(measured, chart, "maps");
  if (selected.rows.empty()) return {left_out(chart, selected.missing)};
  std::vector<ReportBlock> blocks;
  for (const auto& [name, cells] : by_series(selected.rows, chart)) {
    for (const StudyCell* cell : cells) {
      std::set<std::pair<std::vector<std::string>, std::vector<std::string>>> done;
      for (const StudyMap& map : cell->maps) {
        if (map.weights.empty() || !done.emplace(map.rows, map.columns).second) continue;
        blocks.emplace_back(maps_of_labels(*cell, map, name.empty() ? chart.title : chart.title + ": " + name, chart));
      }
    }
  }
  if (blocks.empty()) blocks.push_back(left_out(chart, "its maps are empty"));
  return blocks;
}

}  // namespace

std::vector<ReportBlock> study_chart_blocks(const StudyDocument& study, const StudyChart& chart) {
  switch (chart.kind) {
    case StudyChartKind::kLines:
      return {lines_of(study, chart)};
    case StudyChartKind::kBars:
      return {bars_of(study, chart)};
    case StudyChartKind::kCurve:
      return {curve_of(study, chart)};
    case StudyChartKind::kMaps:
      return maps_of(study, chart);
  }
  return {};
}

}  // namespace transept
