#include "study/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/format_number.h"
#include "study/svg.h"

namespace transept {
namespace {

constexpr double kLargestCell = 26;   // pixels: few cells need not fill the width
constexpr double kLabelRoom = 76;     // pixels for a row's or a column's name
constexpr double kLabelSpacing = 13;  // pixels from one name to the next, at 12 px of type
constexpr double kSwatch = 12;

// Of map `index`, a path a shade, in units of a cell.
std::string cells_of(const HeatMaps& maps, size_t index) {
  const size_t columns = maps.columns.size();
  const std::vector<double>& weights = maps.maps[index].weights;
  std::array<std::string, kHeatShades + 1> paths;
  for (size_t r = 0; r < maps.rows.size(); ++r) {
    for (size_t c = 0, end = 0; c < columns; c = end) {
      const int shade = heat_shade(weights[r * columns + c]);
      for (end = c + 1; end < columns && heat_shade(weights[r * columns + end]) == shade;) ++end;
      paths[static_cast<size_t>(shade)] += fmt::format("M{} {}.5h{}", c, r, end - c);
    }
  }
  std::string out;
  for (size_t shade = 1; shade < paths.size(); ++shade) {
    if (!paths[shade].empty()) out += fmt::format("<path class=\"shade{}\" d=\"{}\"/>", shade, paths[shade]);
  }
  return out;
}

// The cells in their frame, the upper left corner at (x, y). `data-grid` tells the script where they lie.
std::string framed_cells(const HeatMaps& maps, size_t index, double x, double y, double cell) {
  return fmt::format(
      "<g class=\"cells\" data-grid=\"{:.2f} {:.2f} {:.4f}\" transform=\"translate({:.2f} {:.2f}) "
      "scale({:.4f})\"><rect "
      "width=\"{}\" height=\"{}\" class=\"empty\"/><g>{}</g><rect width=\"1\" height=\"1\" class=\"cursor\" "
      "visibility=\"hidden\"/></g>",
      x, y, cell, x, y, cell, maps.columns.size(), maps.rows.size(), cells_of(maps, index));
}

double label_room(const std::vector<std::string>& labels) {
  double room = 0;
  for (const std::string& label : labels) room = std::max(room, text_width(label));
  return std::min(room, kLabelRoom);
}

// The scale of shades, its upper left corner at (0, y); the weights of a quarter of the shades stand below it.
std::string scale_of_shades(double y) {
  std::string out;
  for (int shade = 0; shade <= kHeatShades; ++shade) {
    const double x = shade * kSwatch;
    if (shade > 0) {
      out += fmt::format("<path class=\"shade{} swatch\" d=\"M{:.1f} {:.1f}h{:.1f}\"/>", shade, x - kSwatch,
                         y + kSwatch / 2, kSwatch);
    }
    if (shade % 4 != 0) continue;
    const double part = static_cast<double>(shade) / kHeatShades;
    out += text_at(x, y + kSwatch + 14, shade == 0 ? "start" : "middle", "tick", fmt::format("{:.2g}", part * part));
  }
  return out;
}

}  // namespace

int heat_shade(double weight) {
  return std::isnan(weight) ? 0 : static_cast<int>(std::lround(std::sqrt(std::clamp(weight, 0.0, 1.0)) * kHeatShades));
}

size_t maps_per_row(const std::vector<HeatMap>& maps) {
  const auto group = [&](size_t i) { return maps[i].name.substr(0, maps[i].name.rfind(',')); };
  size_t per_row = 0;
  for (size_t start = 0, end = 0; start < maps.size(); start = end) {
    for (end = start + 1; end < maps.size() && group(end) == group(start);) ++end;
    if (start > 0 && end - start != per_row) return 0;
    per_row = end - start;
  }
  return per_row == 1 ? 0 : per_row;
}

std::string visible_whitespace(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ') {
      out += "␣";
    } else if (c == '\n' || c == '\r') {
      out += "⏎";
    } else if (c == '\t') {
      out += "⇥";
    } else {
      out += c;
    }
  }
  return out;
}

std::string thumbnail_svg(const HeatMaps& maps, size_t index, const std::string& id) {
  return open_svg(static_cast<double>(maps.columns.size()), static_cast<double>(maps.rows.size()), id,
                  maps.maps[index].name, describe(maps, index), "") +
         framed_cells(maps, index, 0, 0, 1) + "</svg>";
}

std::string heat_map_svg(const HeatMaps& maps, size_t index, double width, const std::string& id) {
  const HeatMap& map = maps.maps.at(index);
  TRANSEPT_CHECK(map.weights.size() == maps.rows.size() * maps.columns.size());
  const std::string title = fmt::format("{}: {}", maps.title, map.name);
  constexpr double kScaleTop = 8, kWordsTop = kScaleTop + kSwatch + 44;
  if (map.weights.empty()) {
    return open_svg(width, 120, id, title, describe(maps, index), "") + no_data(0, width, 120) + "</svg>";
  }
  const double row_room = label_room(maps.rows), column_room = label_room(maps.columns);
  const double left = row_room + 8, top = kWordsTop + 10 + column_room + 6;
  const double cell = std::min(kLargestCell, (width - left - 4) / static_cast<double>(maps.columns.size()));
  const double bottom = top + cell * static_cast<double>(maps.rows.size());
  std::string out = open_svg(width, bottom + 4, id, title, describe(maps, index), "");
  out += scale_of_shades(kScaleTop) + text_at(kHeatShades * kSwatch + 16, kScaleTop + kSwatch - 2, "start", "label",
                                              fitted(maps.weight_label, width - kHeatShades * kSwatch - 16));
  out += text_at(0, kWordsTop, "start", "label",
                 fitted(fmt::format("{} ↓  {} →", maps.row_label, maps.column_label), width));
  const size_t every = static_cast<size_t>(std::ceil(kLabelSpacing / cell));
  for (size_t r = 0; r < maps.rows.size(); r += every) {
    out += text_at(left - 6, top + (static_cast<double>(r) + 0.5) * cell + 4, "end", "tick",
                   fitted(maps.rows[r], row_room + 1));
  }
  for (size_t c = 0; c < maps.columns.size(); c += every) {
    out += fmt::format("<g transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</g>",
                       left + (static_cast<double>(c) + 0.5) * cell + 4, top - 6,
                       text_at(0, 0, "start", "tick", fitted(maps.columns[c], column_room + 1)));
  }
  return out + framed_cells(maps, index, left, top, cell) + "</svg>";
}

std::string describe(const HeatMaps& maps, size_t index) {
  const std::vector<double>& weights = maps.maps[index].weights;
  std::string text = fmt::format("{} by {} weights, {} down and {} across.", maps.rows.size(), maps.columns.size(),
                                 maps.row_label.empty() ? "rows" : maps.row_label,
                                 maps.column_label.empty() ? "columns" : maps.column_label);
  size_t largest = weights.size();
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isnan(weights[i])) continue;
    if (largest == weights.size() || weights[i] > weights[largest]) largest = i;
  }
  if (largest == weights.size()) return text + " No values.";
  const size_t columns = maps.columns.size();
  return text + fmt::format(" The largest is {}, in row {} ({}), column {} ({}).", format_number(weights[largest]),
                            largest / columns + 1, maps.rows[largest / columns], largest % columns + 1,
                            maps.columns[largest % columns]);
}

std::string heat_data(const HeatMap& map) {
  std::string out;
  for (const double w : map.weights) {
    if (!out.empty()) out += ' ';
    out += std::isfinite(w) ? std::to_string(std::lround(std::clamp(w, 0.0, 1.0) * 1e4)) : "-";
  }
  return out;
}

}  // namespace transept
