#include "study/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/format_number.h"
#include "study/axis.h"
#include "study/html.h"
#include "study/page_assets.h"
#include "study/svg.h"

namespace transept {
namespace {

constexpr double kLegendRow = 20;
constexpr double kTickGap = 8;
constexpr double kWideLetter = 6;   // by which an M is wider than the average glyph
constexpr size_t kAllMarkers = 40;  // a series of no more points shows each of them
constexpr double kFewMarkers = 8;   // a longer one about so many, to tell it from the others without colour

size_t color_of(size_t series) { return series % kSeriesColors.size(); }

// Circle, square, triangle, diamond in turn.
std::string marker(size_t series, double x, double y) {
  const std::string style = fmt::format("marker fill{}", color_of(series));
  switch (series % 4) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" class=\"{}\"/>", x, y, style);
    case 1:
      return fmt::format("<path d=\"M{:.1f} {:.1f}h5.4v5.4h-5.4z\" class=\"{}\"/>", x - 2.7, y - 2.7, style);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l3.6 6.2h-7.2z\" class=\"{}\"/>", x, y - 4, style);
    default:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l3.8 3.8l-3.8 3.8l-3.8 -3.8z\" class=\"{}\"/>", x, y - 3.8, style);
  }
}

struct Legend {
  std::string svg;
  double height = 0;
};

// Entries in rows from the left, each a swatch and a name. A single series needs none: the title names it.
enum class Swatch { kLine, kPoint, kBar };
template <class AllSeries>
Legend make_legend(const AllSeries& series, double width, Swatch swatch) {
  Legend legend;
  if (series.size() < 2) return legend;
  double x = 0, y = 12;
  for (size_t i = 0; i < series.size(); ++i) {
    const std::string name = fitted(series[i].name, width - 40);
    const double entry = 24 + text_width(name) + 18;
    if (x > 0 && x + entry - 18 > width) {
      x = 0;
      y += kLegendRow;
    }
    if (swatch == Swatch::kLine)
      legend.svg += line_at(x, y - 4, x + 18, y - 4, fmt::format("line stroke{}", color_of(i)));
    if (swatch != Swatch::kBar) {
      legend.svg += marker(i, x + 9, y - 4);
    } else {
      legend.svg +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"2\" class=\"fill{}\"/>", x,
                      y - 10, color_of(i));
    }
    legend.svg += text_at(x + (swatch == Swatch::kBar ? 18 : 24), y, "start", "legend", name);
    x += entry;
  }
  legend.height = y + 12;
  return legend;
}

struct Point {
  double x, y;
};

std::string path_of(const std::vector<Point>& points) {
  std::string d;
  for (size_t i = 0; i < points.size(); ++i)
    d += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", points[i].x, points[i].y);
  return d;
}

// Runs of points that can be drawn, in pixels; each run is one stroke.
std::vector<std::vector<Point>> runs_of(const std::vector<double>& xs, const std::vector<double>& ys,
                                        const LineChart& chart, const Scale& x, const Scale& y) {
  std::vector<std::vector<Point>> runs;
  bool open = false;
  for (size_t i = 0; i < xs.size(); ++i) {
    const bool good = drawable(xs[i], chart.x.log) && drawable(ys[i], chart.y.log);
    if (good && !open) runs.emplace_back();
    if (good) runs.back().push_back({x(xs[i]), y(ys[i])});
    open = good;
  }
  return runs;
}

std::string draw_band(const Series& s, size_t index, const LineChart& chart, const Scale& x, const Scale& y) {
  std::string out;
  std::vector<Point> upper, lower;
  const auto flush = [&] {
    if (upper.size() > 1) {
      upper.insert(upper.end(), lower.rbegin(), lower.rend());
      out += fmt::format("<path d=\"{}Z\" class=\"band fill{}\"/>", path_of(upper), color_of(index));
    } else if (upper.size() == 1) {  // a lone point: the band is a whisker
      out += line_at(upper[0].x, upper[0].y, lower[0].x, lower[0].y, fmt::format("line stroke{}", color_of(index)));
    }
    upper.clear();
    lower.clear();
  };
  for (size_t i = 0; i < s.lower.size(); ++i) {
    if (drawable(s.x[i], chart.x.log) && drawable(s.lower[i], chart.y.log) && drawable(s.upper[i], chart.y.log)) {
      upper.push_back({x(s.x[i]), y(s.upper[i])});
      lower.push_back({x(s.x[i]), y(s.lower[i])});
    } else {
      flush();
    }
  }
  flush();
  return out;
}

std::string draw_points(const PointSeries& s, size_t index, const PointChart& chart, const Scale& x, const Scale& y) {
  std::string out;
  for (size_t i = 0; i < s.x.size(); ++i) {
    if (!drawable(s.x[i], chart.x.log) || !drawable(s.y[i], chart.y.log)) continue;
    out += fmt::format("<g><title>{}</title>{}</g>", escape_html(s.names[i]), marker(index, x(s.x[i]), y(s.y[i])));
  }
  return out;
}

std::string draw_line(const Series& s, size_t index, const LineChart& chart, const Scale& x, const Scale& y) {
  const auto runs = runs_of(s.x, s.y, chart, x, y);
  std::string d, markers;
  size_t points = 0;
  for (const auto& run : runs) points += run.size();
  const bool all = points <= kAllMarkers;
  const double spacing = static_cast<double>(points) / kFewMarkers;
  double next = spacing / 2;
  size_t seen = 0;
  for (const auto& run : runs) {
    if (run.size() > 1) d += path_of(run);
    for (const Point& p : run) {
      const bool due = all || run.size() == 1 || (index > 0 && static_cast<double>(seen) >= next);
      if (due) markers += marker(index, p.x, p.y);
      if (static_cast<double>(seen++) >= next) next += spacing;
    }
  }
  std::string out;
  if (!d.empty()) {
    // Beyond the palette's length the colours come again, dashed.
    out = fmt::format("<path d=\"{}\" class=\"line stroke{}{}\"/>", d, color_of(index),
                      index >= kSeriesColors.size() ? " dashed" : "");
  }
  return out + markers;
}

std::string range_words(const std::vector<double>& values, bool log) {
  std::vector<double> good;
  for (const double v : values) {
    if (drawable(v, log)) good.push_back(v);
  }
  if (good.empty()) return "no values";
  const auto [low, high] = std::minmax_element(good.begin(), good.end());
  return fmt::format("{} values from {} to {}, the last {}", good.size(), format_number(*low), format_number(*high),
                     format_number(good.back()));
}

void check(const LineChart& chart) {
  for (const Series& s : chart.series) {
    TRANSEPT_CHECK(s.x.size() == s.y.size() && s.lower.size() == s.upper.size());
    TRANSEPT_CHECK(s.lower.empty() || s.lower.size() == s.y.size());
  }
}

void check(const PointChart& chart) {
  for (const PointSeries& s : chart.series) TRANSEPT_CHECK(s.x.size() == s.y.size() && s.names.size() == s.y.size());
}

void check(const BarChart& chart) {
  for (const BarSeries& s : chart.series) {
    TRANSEPT_CHECK(s.values.size() == chart.categories.size());
    TRANSEPT_CHECK(s.errors.empty() || s.errors.size() == s.values.size());
  }
}

// The frame that charts of two axes share; `draw` adds what stands in it, given the scales and the plot's top and
// bottom.
template <class Chart, class Draw>
std::string plot_svg(const Chart& chart, std::vector<double> xs, std::vector<double> ys, Swatch swatch, double width,
                     const std::string& id, const Draw& draw) {
  const Legend legend = make_legend(chart.series, width, swatch);
  const double plot_height = width >= kLargeChart ? 300 : width >= kMediumChart ? 230 : 200;
  const double top = legend.height + (chart.y.label.empty() ? 8 : 32);
  const double bottom = top + plot_height;
  const double height = bottom + (chart.x.label.empty() ? 26 : 46);
  const int y_wanted = static_cast<int>(plot_height / 45);
  if (xs.empty()) {
    return open_svg(width, height, id, chart.title, describe(chart), "") + no_data(top, width, plot_height) + "</svg>";
  }

  if (chart.y.from_zero && !chart.y.log) ys.push_back(0);
  if (chart.x.from_zero && !chart.x.log) xs.push_back(0);
  const Interval x_range = cover(xs, chart.x.log);
  const Interval y_range = chart.y.log ? cover(ys, true) : round_outward(cover(ys, false), y_wanted);
  const std::vector<Tick> y_ticks = make_ticks(y_range.low, y_range.high, y_wanted, chart.y.log);
  double label_width = 0;
  for (const Tick& t : y_ticks) label_width = std::max(label_width, text_width(t.label));
  const double left = label_width + kTickGap + kWideLetter, right = width - 14;
  const std::vector<Tick> x_ticks =
      make_ticks(x_range.low, x_range.high,
                 std::max(2, static_cast<int>((right - left) / (width < kLargeChart ? 80 : 110))), chart.x.log);
  const Scale x(x_range, left, right, chart.x.log), y(y_range, bottom, top, chart.y.log);

  // For the script that shows values under the pointer: the plot's box in pixels, and the intervals it stands for.
  std::string out =
      open_svg(width, height, id, chart.title, describe(chart),
               fmt::format(" data-box=\"{:.1f} {:.1f} {:.1f} {:.1f}\" data-x=\"{} {} {:d}\" data-y=\"{} {} {:d}\"",
                           left, top, right, bottom, exact_number(x_range.low), exact_number(x_range.high), chart.x.log,
                           exact_number(y_range.low), exact_number(y_range.high), chart.y.log));
  out += legend.svg;
  if (!chart.y.label.empty()) out += text_at(0, top - 18, "start", "label", fitted(chart.y.label, width));
  for (const Tick& t : y_ticks) {
    out += line_at(left, y(t.value), right, y(t.value), "grid");
    out += text_at(left - kTickGap, y(t.value) + 4, "end", "tick", t.label);
  }
  out += line_at(left, bottom, right, bottom, "axis");
  double free_from = 0;
  for (const Tick& t : x_ticks) {
    out += line_at(x(t.value), bottom, x(t.value), bottom + 4, "axis");
    const double half = text_width(t.label) / 2, at = std::min(x(t.value), width - half);
    if (at - half < free_from) continue;  // no room beside the label before
    out += text_at(at, bottom + 18, "middle", "tick", t.label);
    free_from = at + half + 6;
  }
  if (!chart.x.label.empty()) out += text_at(right, bottom + 38, "end", "label", fitted(chart.x.label, width - 20));
  return out + draw(x, y, top, bottom) + "</svg>";
}

}  // namespace

void thin(Series& series) {
  const size_t count = series.x.size();
  if (count <= kMaxLinePoints) return;
  const size_t every = (count + kMaxLinePoints - 1) / kMaxLinePoints;
  for (std::vector<double>* values : {&series.x, &series.y, &series.lower, &series.upper}) {
    if (values->empty()) continue;
    std::vector<double> kept;
    for (size_t i = 0; i < count; i += every) kept.push_back((*values)[i]);
    if ((count - 1) % every != 0) kept.push_back(values->back());
    *values = std::move(kept);
  }
}

std::string describe(const LineChart& chart) {
  std::string text =
      fmt::format("Line chart of {} over {}.", chart.y.label.empty() ? chart.title : chart.y.label, chart.x.label);
  for (const Series& s : chart.series) text += fmt::format(" {}: {}.", s.name, range_words(s.y, chart.y.log));
  if (chart.series.empty()) text += " No data.";
  return text;
}

std::string describe(const PointChart& chart) {
  std::string text = fmt::format("Points of {} over {}.", chart.y.label, chart.x.label);
  for (const PointSeries& s : chart.series) text += fmt::format(" {}: {} points.", s.name, s.x.size());
  if (chart.series.empty()) text += " No data.";
  return text;
}

std::string describe(const BarChart& chart) {
  std::string text = fmt::format("Bar chart of {} for {} categories.",
                                 chart.value_label.empty() ? chart.title : chart.value_label, chart.categories.size());
  for (const BarSeries& s : chart.series) text += fmt::format(" {}: {}.", s.name, range_words(s.values, false));
  return text;
}

std::string line_svg(const LineChart& chart, double width, const std::string& id) {
  check(chart);
  std::vector<double> xs, ys;
  for (const Series& s : chart.series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!drawable(s.x[i], chart.x.log)) continue;
      if (drawable(s.y[i], chart.y.log)) xs.push_back(s.x[i]);
      ys.push_back(s.y[i]);
      if (!s.lower.empty()) {
        ys.push_back(s.lower[i]);
        ys.push_back(s.upper[i]);
      }
    }
  }
  return plot_svg(
      chart, xs, ys, Swatch::kLine, width, id, [&](const Scale& x, const Scale& y, double top, double bottom) {
        std::string out;
        for (size_t i = 0; i < chart.series.size(); ++i) out += draw_band(chart.series[i], i, chart, x, y);
        for (size_t i = 0; i < chart.series.size(); ++i) out += draw_line(chart.series[i], i, chart, x, y);
        out += fmt::format(
            "<line x1=\"0\" y1=\"{:.1f}\" x2=\"0\" y2=\"{:.1f}\" class=\"guide\" visibility=\"hidden\"/>", top, bottom);
        for (size_t i = 0; i < chart.series.size(); ++i) {
          out += fmt::format("<circle r=\"4.5\" class=\"dot fill{}\" visibility=\"hidden\"/>", color_of(i));
        }
        return out;
      });
}

std::string point_svg(const PointChart& chart, double width, const std::string& id) {
  check(chart);
  std::vector<double> xs, ys;
  for (const PointSeries& s : chart.series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!drawable(s.x[i], chart.x.log) || !drawable(s.y[i], chart.y.log)) continue;
      xs.push_back(s.x[i]);
      ys.push_back(s.y[i]);
    }
  }
  return plot_svg(chart, xs, ys, Swatch::kPoint, width, id, [&](const Scale& x, const Scale& y, double, double) {
    std::string out;
    for (size_t i = 0; i < chart.series.size(); ++i) out += draw_points(chart.series[i], i, chart, x, y);
    return out;
  });
}

std::string bar_svg(const BarChart& chart, double width, const std::string& id) {
  check(chart);
  const Legend legend = make_legend(chart.series, width, Swatch::kBar);
  const bool stacked = width < kMediumChart;  // too narrow for names beside the bars: they stand above
  const double bar = chart.series.size() > 1 ? 14 : 20, group_gap = stacked ? 30 : 14;
  const double group = bar * static_cast<double>(std::max<size_t>(1, chart.series.size()));
  const double top = legend.height + 4;
  const double plot_height = std::max(1.0, static_cast<double>(chart.categories.size())) * (group + group_gap);
  const double bottom = top + plot_height;
  const double height = bottom + (chart.value_label.empty() ? 26 : 46);

  std::vector<double> values{0};
  double name_width = 0, value_width = 0;
  for (const std::string& name : chart.categories) name_width = std::max(name_width, text_width(name));
  for (const BarSeries& s : chart.series) {
    for (size_t i = 0; i < s.values.size(); ++i) {
      const double error = s.errors.empty() || !drawable(s.errors[i], false) ? 0 : std::abs(s.errors[i]);
      if (!drawable(s.values[i], false)) continue;
      values.push_back(s.values[i] - error);
      values.push_back(s.values[i] + error);
      value_width = std::max(value_width, text_width(format_number(s.values[i])));
    }
  }
  std::string out = open_svg(width, height, id, chart.title, describe(chart), "");
  if (values.size() == 1) return out + no_data(top, width, plot_height) + "</svg>";

  name_width = stacked ? width - 8 : std::min(name_width, width * 0.35);
  const double left = stacked ? 4 : name_width + kTickGap + 2, right = width - value_width - 12;
  const int wanted = std::max(2, static_cast<int>((right - left) / 90));
  const Interval range = round_outward(cover(values, false), wanted);
  const Scale x(range, left, right, false);
  for (const Tick& t : make_ticks(range.low, range.high, wanted, false)) {
    out += line_at(x(t.value), top, x(t.value), bottom, "grid");
    out += text_at(std::max(x(t.value), text_width(t.label) / 2), bottom + 18, "middle", "tick", t.label);
  }
  out += line_at(x(0), top, x(0), bottom, "axis");
  out += legend.svg;
  for (size_t c = 0; c < chart.categories.size(); ++c) {
    const double y0 = top + (stacked ? 20 : group_gap / 2) + static_cast<double>(c) * (group + group_gap);
    out += stacked ? text_at(left, y0 - 5, "start", "name", fitted(chart.categories[c], name_width))
                   : text_at(left - kTickGap, y0 + group / 2 + 4, "end", "name",
                             fitted(chart.categories[c], name_width + 1));
    for (size_t i = 0; i < chart.series.size(); ++i) {
      const double v = chart.series[i].values[c], y = y0 + static_cast<double>(i) * bar, middle = y + bar / 2;
      if (!drawable(v, false)) continue;
      out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"fill{}\"/>",
                         std::min(x(0), x(v)), y + 1, std::abs(x(v) - x(0)), bar - 2, color_of(i));
      double end = std::max(x(0), x(v));
      if (!chart.series[i].errors.empty() && drawable(chart.series[i].errors[c], false)) {
        const double error = std::abs(chart.series[i].errors[c]), a = x(v - error), b = x(v + error);
        out += line_at(a, middle, b, middle, "whisker") + line_at(a, middle - 3, a, middle + 3, "whisker") +
               line_at(b, middle - 3, b, middle + 3, "whisker");
        end = std::max(end, b);
      }
      out += text_at(end + 6, middle + 4, "start", "value", format_number(v));
    }
  }
  if (!chart.value_label.empty())
    out += text_at(right, bottom + 38, "end", "label", fitted(chart.value_label, width - 20));
  return out + "</svg>";
}

}  // namespace transept
