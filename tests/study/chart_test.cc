// Where charts put things: inside the plot, gaps at what is no number, and whole pictures for little or no data.
#include "study/chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "page_checker.h"

namespace transept {
namespace {

struct Picture {
  CheckedPage page;
  double left = 0, top = 0, right = 0, bottom = 0;
};

Picture draw(const LineChart& chart, double width) {
  Picture p{check_page(line_svg(chart, width, "c"))};
  const auto& attributes = p.page.elements.at(0).attributes;
  if (const auto box = attributes.find("data-box"); box != attributes.end()) {
    std::istringstream in(box->second);
    in >> p.left >> p.top >> p.right >> p.bottom;
  }
  return p;
}

struct Vertex {
  char command;
  double x, y;
};

// Of a path made of M and L alone; a closing Z adds none.
std::vector<Vertex> vertices(const std::string& path) {
  std::vector<Vertex> out;
  std::istringstream in(path);
  for (Vertex v{}; in >> v.command && v.command != 'Z' && in >> v.x >> v.y;) out.push_back(v);
  return out;
}

std::vector<std::vector<Vertex>> paths(const Picture& p, std::string_view style) {
  std::vector<std::vector<Vertex>> out;
  for (const Element& e : p.page.all("path", style)) out.push_back(vertices(e.attributes.at("d")));
  return out;
}

LineChart chart_of(std::vector<Series> series) { return {"Loss", "", {"Step"}, {"Nats"}, std::move(series)}; }

TEST(LineSvg, PointsLieInsideThePlotAndInOrder) {
  for (const double width : {kSmallChart, kMediumChart, kBroadChart, kLargeChart}) {
    for (const bool log : {false, true}) {
      Series a{"a", {}, {}}, b{"b", {}, {}};
      for (int i = 1; i <= 100; ++i) {
        a.x.push_back(i * i);
        a.y.push_back(10.0 / i);
        b.x.push_back(i);
        b.y.push_back(-3.0 * i);
        b.lower.push_back(-3.0 * i - 400);
        b.upper.push_back(-3.0 * i + 400);
      }
      LineChart chart = chart_of({a, b});
      chart.x.log = log;
      const Picture p = draw(chart, width);
      EXPECT_TRUE(p.page.problems.empty()) << p.page.problems[0];
      auto all = paths(p, "line");
      ASSERT_EQ(all.size(), 2u);
      EXPECT_EQ(all[0].size(), 100u);
      for (const auto& band : paths(p, "band")) {
        EXPECT_EQ(band.size(), 200u);
        all.push_back(band);
      }
      ASSERT_EQ(all.size(), 3u);
      for (const auto& path : all) {
        for (const Vertex& v : path) {
          EXPECT_GE(v.x, p.left - 0.1);
          EXPECT_LE(v.x, p.right + 0.1);
          EXPECT_GE(v.y, p.top - 0.1);
          EXPECT_LE(v.y, p.bottom + 0.1);
        }
      }
      EXPECT_LT(p.right, width);
      EXPECT_NEAR(all[0].front().x, p.left, 0.1);  // the smallest x at the left edge, the largest at the right
      EXPECT_NEAR(all[0].back().x, p.right, 0.1);
      EXPECT_LT(all[0].front().y, all[0].back().y);  // falling values go down the picture
      const double half = (log ? std::log(100.0) / std::log(10000.0) : 99.0 / 9999.0);
      EXPECT_NEAR(all[0][9].x, p.left + half * (p.right - p.left), 0.2);  // x = 100
    }
  }
}

TEST(LineSvg, NanLeavesAGap) {
  const Picture p = draw(chart_of({{"a", {1, 2, 3, 4, 5, 6}, {1, 2, NAN, 3, INFINITY, 4}}}), kMediumChart);
  const auto lines = paths(p, "line");
  ASSERT_EQ(lines.size(), 1u);
  std::string commands;
  for (const Vertex& v : lines[0]) commands += v.command;
  EXPECT_EQ(commands, "ML");  // 1-2; 4 and 6 stand alone
  EXPECT_EQ(p.page.all("circle", "marker").size(), 4u);
}

TEST(LineSvg, LogAxisLeavesOutWhatIsNotPositive) {
  LineChart chart = chart_of({{"a", {0, 1, 10, 100}, {9, 1, 2, 3}}});
  chart.x.log = true;
  const auto lines = paths(draw(chart, kMediumChart), "line");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), 3u);
}

TEST(LineSvg, OnePointIsAMarkerInThePlot) {
  const Picture p = draw(chart_of({{"a", {3}, {2.5}}}), kMediumChart);
  EXPECT_TRUE(paths(p, "line").empty());
  const auto markers = p.page.all("circle", "marker");
  ASSERT_EQ(markers.size(), 1u);
  EXPECT_NEAR(std::stod(markers[0].attributes.at("cx")), (p.left + p.right) / 2, 0.1);
}

TEST(LineSvg, NothingToDraw) {
  for (const LineChart& chart : {chart_of({}), chart_of({{"a", {}, {}}}), chart_of({{"a", {1, 2}, {NAN, NAN}}})}) {
    const Picture p = draw(chart, kSmallChart);
    EXPECT_TRUE(p.page.problems.empty());
    ASSERT_EQ(p.page.all("text", "label").size(), 1u);
    EXPECT_EQ(p.page.all("text", "label")[0].text, "No data");
  }
}

TEST(LineSvg, ExtremeValuesStayFinite) {
  const Picture p = draw(
      chart_of({{"a", {-1.7e308, 0, 1.7e308}, {1, 2, 3}}, {"b", {0, 1}, {1e299, -1e299}}, {"c", {0, 1}, {5e-324, 0}}}),
      520);
  for (const Element& e : p.page.elements) {
    for (const auto& [key, value] : e.attributes) {
      EXPECT_EQ(value.find("nan"), std::string::npos) << key;
      EXPECT_EQ(value.find("inf"), std::string::npos) << key;
    }
  }
}

TEST(LineSvg, FromZero) {
  LineChart chart = chart_of({{"a", {1, 2}, {900, 1000}}});
  chart.y.from_zero = true;
  const Picture p = draw(chart, kMediumChart);
  bool zero = false;
  for (const Element& e : p.page.all("text", "tick")) zero = zero || e.text == "0";
  EXPECT_TRUE(zero);
}

TEST(LineSvg, TickLabelsStayInThePictureAndApart) {
  // The second has labels of ten characters, for which the ticks of a small chart stand too close.
  for (const auto& xs : {std::vector<double>{123456, 98765432}, std::vector<double>{1.0000010005, 1.000001041}}) {
    for (const double width : {kSmallChart, kMediumChart, kBroadChart, kLargeChart}) {
      const Picture p = draw(chart_of({{"a", xs, {0.00012, 0.00019}}}), width);
      double last = -1e9;
      for (const Element& e : p.page.all("text", "tick")) {
        const double x = std::stod(e.attributes.at("x")), w = 6.7 * static_cast<double>(e.text.size());
        const std::string anchor = e.attributes.at("text-anchor");
        const double from = anchor == "end" ? x - w : x - w / 2, to = anchor == "end" ? x : x + w / 2;
        EXPECT_GE(from, 0);
        EXPECT_LE(to, width + 0.1);
        if (anchor != "middle") continue;
        EXPECT_GT(from, last);
        last = to;
      }
      EXPECT_GT(last, 0);
    }
  }
}

TEST(LineSvg, IsAnImageWithWords) {
  const Picture p = draw(chart_of({{"train", {1, 2}, {3, 1}}}), kMediumChart);
  const auto& svg = p.page.elements.at(0).attributes;
  EXPECT_EQ(svg.at("role"), "img");
  EXPECT_EQ(svg.at("aria-labelledby"), "c-t c-d");
  EXPECT_EQ(p.page.all("title").at(0).text, "Loss");
  EXPECT_EQ(p.page.all("desc").at(0).text, "Line chart of Nats over Step. train: 2 values from 1 to 3, the last 1.");
}

TEST(Thin, KeepsTheLastPointAndTheBand) {
  for (const size_t count : {1u, 1000u, 1001u, 2000u, 2001u, 54321u}) {
    Series s{"a", {}, {}, {}, {}};
    for (size_t i = 0; i < count; ++i) {
      s.x.push_back(static_cast<double>(i));
      s.y.push_back(2.0 * static_cast<double>(i));
      s.lower.push_back(s.y.back() - 1);
      s.upper.push_back(s.y.back() + 1);
    }
    thin(s);
    EXPECT_LE(s.x.size(), kMaxLinePoints + 1);
    EXPECT_GE(s.x.size(), std::min(count, kMaxLinePoints / 2));
    EXPECT_EQ(s.x.back(), static_cast<double>(count - 1));
    ASSERT_EQ(s.x.size(), s.y.size());
    ASSERT_EQ(s.x.size(), s.lower.size());
    ASSERT_EQ(s.x.size(), s.upper.size());
    for (size_t i = 0; i < s.x.size(); ++i) {
      EXPECT_EQ(s.y[i], 2 * s.x[i]);
      EXPECT_EQ(s.lower[i] + 2, s.upper[i]);
    }
  }
}

BarChart bars(std::vector<BarSeries> series) { return {"Rates", "", "tokens/s", {"one", "two"}, std::move(series)}; }

TEST(BarSvg, LengthsFollowTheValues) {
  for (const double width : {kSmallChart, kMediumChart, kBroadChart, kLargeChart}) {
    const CheckedPage page = check_page(bar_svg(bars({{"a", {10, 40}}}), width, "b"));
    EXPECT_TRUE(page.problems.empty());
    const auto rects = page.all("rect");
    ASSERT_EQ(rects.size(), 2u);
    const double w0 = std::stod(rects[0].attributes.at("width")), w1 = std::stod(rects[1].attributes.at("width"));
    EXPECT_NEAR(w1, 4 * w0, 0.5);
    EXPECT_LE(std::stod(rects[1].attributes.at("x")) + w1, width);
    EXPECT_GT(w0, 0);
  }
}

TEST(BarSvg, NegativeValuesGoLeftOfZero) {
  const auto rects = check_page(bar_svg(bars({{"a", {-10, 10}}}), kMediumChart, "b")).all("rect");
  ASSERT_EQ(rects.size(), 2u);
  const double x0 = std::stod(rects[0].attributes.at("x")), w0 = std::stod(rects[0].attributes.at("width"));
  EXPECT_NEAR(x0 + w0, std::stod(rects[1].attributes.at("x")), 0.2);
}

TEST(BarSvg, NanHasNoBarAndErrorsHaveWhiskers) {
  const CheckedPage page = check_page(bar_svg(bars({{"a", {NAN, 10}, {1, 2}}}), kMediumChart, "b"));
  EXPECT_EQ(page.all("rect").size(), 1u);
  EXPECT_EQ(page.all("line", "whisker").size(), 3u);
}

TEST(BarSvg, NothingToDraw) {
  for (const BarChart& chart : {BarChart{"Rates", "", "", {}, {}}, bars({}), bars({{"a", {NAN, NAN}}})}) {
    const CheckedPage page = check_page(bar_svg(chart, kSmallChart, "b"));
    EXPECT_TRUE(page.problems.empty());
    ASSERT_EQ(page.all("text", "label").size(), 1u);
  }
}

TEST(PointSvg, AMarkAPointAndNoneForWhatCannotBeDrawn) {
  const PointChart chart{
      "Cache",
      "",
      {"Parameters", true},
      {"Bytes", true},
      {{"a", {1, 10, 0, 100}, {5, 50, 1, NAN}, {"one", "ten", "zero", "gap"}}, {"b", {30}, {7}, {"b"}}}};
  for (const double width : {kSmallChart, kLargeChart}) {
    const CheckedPage page = check_page(point_svg(chart, width, "c"));
    EXPECT_TRUE(page.problems.empty());
    EXPECT_EQ(page.all("circle", "marker").size(), 2u + 1);  // and one in the legend
    EXPECT_EQ(page.all("path", "marker").size(), 1u + 1);
    std::vector<std::string> names;
    for (const Element& title : page.all("title")) names.push_back(title.text);
    EXPECT_EQ(names, (std::vector<std::string>{"Cache", "one", "ten", "b"}));
    EXPECT_TRUE(page.all("line", "line").empty());  // the legend's swatches are points
  }
  EXPECT_NE(point_svg({"Nothing", "", {"x"}, {"y"}, {}}, kSmallChart, "c").find("No data"), std::string::npos);
}

}  // namespace
}  // namespace transept
