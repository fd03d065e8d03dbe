// Charts as inline SVG. Colours and fonts come from the page's style sheet (page_assets.h), so one chart serves light,
// dark and print.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace transept {

struct Axis {
  std::string label;
  bool log = false;        // values that are not positive are left out
  bool from_zero = false;  // the axis includes 0 (linear only)
};

// One line. x ascending; a y that is no number leaves a gap. `lower` and `upper`, both empty or as long as y, draw a
// band (mean ± sd).
struct Series {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> lower = {}, upper = {};
};

// More points of one line cannot be told apart on a screen and only swell the file.
inline constexpr size_t kMaxLinePoints = 1000;

// Every n-th of the points and the last, so that no more than kMaxLinePoints + 1 are left.
void thin(Series& series);

struct LineChart {
  std::string title;
  std::string caption;  // below the chart; may be empty
  Axis x, y;
  std::vector<Series> series;
  bool wide = false;  // over the page's whole width
};

// Points in any order, each with a name that shows under the pointer; x, y and names are equally long.
struct PointSeries {
  std::string name;
  std::vector<double> x, y;
  std::vector<std::string> names;
};

struct PointChart {
  std::string title;
  std::string caption;
  Axis x, y;
  std::vector<PointSeries> series;
  bool wide = false;
};

// One value per category (NaN: no bar); `errors`, empty or as long as `values`, draws whiskers of ± that size.
struct BarSeries {
  std::string name;
  std::vector<double> values;
  std::vector<double> errors = {};
};

struct BarChart {
  std::string title;
  std::string caption;
  std::string value_label;
  std::vector<std::string> categories;
  std::vector<BarSeries> series;
  bool wide = false;
};

// Widths in CSS pixels at which a chart is drawn; the page shows the one that fits its container, so text keeps its
// size everywhere.
inline constexpr double kSmallChart = 320, kMediumChart = 520, kBroadChart = 760, kLargeChart = 1040;

// `id` is unique in the page and a valid attribute value; the <title> and <desc> get ids from it.
std::string line_svg(const LineChart& chart, double width, const std::string& id);
std::string point_svg(const PointChart& chart, double width, const std::string& id);
std::string bar_svg(const BarChart& chart, double width, const std::string& id);

// What the picture shows, in words.
std::string describe(const LineChart& chart);
std::string describe(const PointChart& chart);
std::string describe(const BarChart& chart);

}  // namespace transept
