// Matrices of weights as pictures, the attention of layers and heads above all: small ones side by side, and one of
// them large with its rows and columns named. A cell's shade follows the square root of its weight, so that the small
// ones among many show. Inline SVG in the page's colours: the cells of one shade are one path, runs of neighbours one
// stroke, about seven bytes a cell.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace transept {

// Row-major [rows, columns] of the HeatMaps that it belongs to; weights from 0 to 1, NaN: an empty cell.
struct HeatMap {
  std::string name;  // "layer 0, head 1"
  std::vector<double> weights;
};

struct HeatMaps {
  std::string title;
  std::string caption;                                // below the maps; may be empty
  std::string row_label, column_label, weight_label;  // "Query", "Key", "Attention"
  std::vector<std::string> rows, columns;             // what each row and column stands for: a token
  std::vector<HeatMap> maps;
  size_t per_row =
      0;  // of the small ones where there is room: the heads of a layer; 0 or above kMaxMapsPerRow: as many as fit
};

// The largest side that a page shows, and the most maps of one block: beyond, cells cannot be told apart.
inline constexpr size_t kMaxHeatMapSide = 64, kMaxHeatMaps = 32;

inline constexpr size_t kMaxMapsPerRow = 8;

inline constexpr int kHeatShades = 16;

// 0 (nothing drawn) to kHeatShades, of a weight from 0 to 1.
int heat_shade(double weight);

// How many neighbours share a name up to its last comma ("layer 0, head 1"), where all groups are equally large; else
// 0.
size_t maps_per_row(const std::vector<HeatMap>& maps);

// Spaces, tabs and line ends as signs that show.
std::string visible_whitespace(const std::string& text);

// Map `index` without words, a unit a cell. `id` as for charts.
std::string thumbnail_svg(const HeatMaps& maps, size_t index, const std::string& id);

// Map `index` with the names of rows and columns and the scale of shades, `width` CSS pixels wide.
std::string heat_map_svg(const HeatMaps& maps, size_t index, double width, const std::string& id);

// What one map shows, in words.
std::string describe(const HeatMaps& maps, size_t index);

// The weights in units of 1e-4, a space between them, "-" for an empty cell: what the page's script reads.
std::string heat_data(const HeatMap& map);

}  // namespace transept
