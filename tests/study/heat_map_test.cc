// Maps of weights: every cell drawn once in the shade of its weight, names where there is room, words for who cannot
// see them.
#include "study/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "page_checker.h"
#include "study/chart.h"
#include "study/svg.h"

namespace transept {
namespace {

// Causal, the weights of a row summing to one.
HeatMaps causal(size_t side) {
  HeatMaps maps{"Attention", "", "Query", "Key", "Weight", {}, {}, {{"layer 0, head 0", {}}}};
  for (size_t r = 0; r < side; ++r) {
    maps.rows.push_back("token" + std::to_string(r));
    for (size_t c = 0; c < side; ++c)
      maps.maps[0].weights.push_back(c > r ? NAN
                                           : 2.0 * static_cast<double>(c + 1) / static_cast<double>((r + 1) * (r + 2)));
  }
  maps.columns = maps.rows;
  return maps;
}

// Of the paths of an image, the shade at each cell; -1: drawn twice.
std::vector<int> drawn_shades(const CheckedPage& page, size_t rows, size_t columns) {
  std::vector<int> shades(rows * columns, 0);
  for (const Element& path : page.all("path")) {
    const std::string style = path.attributes.at("class");
    if (style.find("swatch") != std::string::npos) continue;
    const int shade = std::stoi(style.substr(5));
    std::istringstream in(path.attributes.at("d"));
    char command = 0;
    size_t x = 0, length = 0;
    double y = 0;
    while (in >> command >> x >> y >> command >> length) {
      for (size_t c = x; c < x + length; ++c) {
        int& cell = shades.at(static_cast<size_t>(y) * columns + c);
        cell = cell == 0 ? shade : -1;
      }
    }
  }
  return shades;
}

TEST(HeatShade, FollowsTheSquareRoot) {
  EXPECT_EQ(heat_shade(0), 0);
  EXPECT_EQ(heat_shade(1), kHeatShades);
  EXPECT_EQ(heat_shade(0.25), kHeatShades / 2);
  EXPECT_EQ(heat_shade(0.0625), kHeatShades / 4);
  for (const double odd : {-1.0, -HUGE_VAL, static_cast<double>(NAN)}) EXPECT_EQ(heat_shade(odd), 0);
  for (const double odd : {2.0, HUGE_VAL}) EXPECT_EQ(heat_shade(odd), kHeatShades);
}

TEST(HeatMapSvg, EveryCellIsDrawnOnceInItsShade) {
  for (const size_t side : {1u, 7u, 64u}) {
    const HeatMaps maps = causal(side);
    std::vector<int> wanted;
    for (const double w : maps.maps[0].weights) wanted.push_back(heat_shade(w));
    for (const std::string& svg : {thumbnail_svg(maps, 0, "m"), heat_map_svg(maps, 0, kSmallChart, "m"),
                                   heat_map_svg(maps, 0, kMediumChart, "m")}) {
      const CheckedPage page = check_page(svg);
      EXPECT_TRUE(page.problems.empty()) << page.problems[0];
      EXPECT_EQ(drawn_shades(page, side, side), wanted);
      EXPECT_EQ(page.elements.at(0).attributes.at("role"), "img");
      EXPECT_EQ(page.elements.at(0).attributes.at("aria-labelledby"), "m-t m-d");
    }
  }
}

TEST(HeatMapSvg, NamesStandInThePictureAndApart) {
  for (const size_t side : {2u, 12u, 64u}) {
    for (const double width : {kSmallChart, kMediumChart}) {
      const HeatMaps maps = causal(side);
      const CheckedPage page = check_page(heat_map_svg(maps, 0, width, "m"));
      std::istringstream grid(page.all("g", "cells").at(0).attributes.at("data-grid"));
      double left = 0, top = 0, cell = 0;
      grid >> left >> top >> cell;
      EXPECT_LE(left + cell * static_cast<double>(side), width);
      double last = -1e9;
      size_t names = 0;
      for (const Element& e : page.all("text", "tick")) {
        if (e.text.substr(0, 5) != "token" || e.attributes.at("text-anchor") != "end") continue;
        const double x = std::stod(e.attributes.at("x")), y = std::stod(e.attributes.at("y"));
        EXPECT_GE(x - text_width(e.text), -0.1);
        EXPECT_LE(x, left);
        EXPECT_GE(y - last, 12.9);
        last = y;
        ++names;
      }
      EXPECT_GE(names, std::min<size_t>(side, 10));
    }
  }
}

TEST(HeatMapSvg, NothingToDraw) {
  HeatMaps maps = causal(0);
  EXPECT_NE(heat_map_svg(maps, 0, kSmallChart, "m").find("No data"), std::string::npos);
  EXPECT_TRUE(check_page(heat_map_svg(maps, 0, kSmallChart, "m")).problems.empty());
}

TEST(HeatMapSvg, ALargeMapStaysSmall) {
  // Half of the cells, each of another shade than its neighbour at worst.
  HeatMaps maps = causal(kMaxHeatMapSide);
  for (size_t i = 0; i < maps.maps[0].weights.size(); ++i) maps.maps[0].weights[i] = i % 2 == 0 ? 1 : 0.25;
  EXPECT_LT(thumbnail_svg(maps, 0, "m").size(), size_t{40} << 10);
  EXPECT_LT(thumbnail_svg(causal(kMaxHeatMapSide), 0, "m").size(), size_t{12} << 10);
}

TEST(HeatMap, Words) {
  HeatMaps maps = causal(2);
  EXPECT_EQ(describe(maps, 0),
            "2 by 2 weights, Query down and Key across. The largest is 1, in row 1 (token0), column 1 (token0).");
  maps.maps[0].weights.assign(4, NAN);
  EXPECT_EQ(describe(maps, 0), "2 by 2 weights, Query down and Key across. No values.");
}

TEST(HeatMap, RowsOfOneLayer) {
  const auto per_row = [](const std::vector<std::string>& names) {
    std::vector<HeatMap> maps;
    for (const std::string& name : names) maps.push_back({name, {}});
    return maps_per_row(maps);
  };
  EXPECT_EQ(per_row({"layer 0, head 0", "layer 0, head 1", "layer 1, head 0", "layer 1, head 1"}), 2u);
  EXPECT_EQ(per_row({"layer 0, head 0", "layer 0, head 1", "layer 0, head 2"}), 3u);
  EXPECT_EQ(per_row({"layer 0, head 0", "layer 0, head 1", "layer 1, head 0"}), 0u);
  EXPECT_EQ(per_row({"one", "two", "three"}), 0u);
  EXPECT_EQ(per_row({}), 0u);
}

TEST(HeatMap, Data) {
  EXPECT_EQ(heat_data({"", {0, 0.12344, 1, NAN, 7}}), "0 1234 10000 - 10000");
  EXPECT_EQ(visible_whitespace(" the\n\tend"), "␣the⏎⇥end");
}

}  // namespace
}  // namespace transept
