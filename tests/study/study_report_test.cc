// The page of a study, from results as a study writes them, from partial ones, and from what is none.
#include "study/study_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file.h"
#include "base/problem.h"
#include "page_checker.h"

namespace transept {
namespace {

Json axes_of(const std::string& position, int context) { return {{"position", position}, {"context", context}}; }

// Two positions at two contexts over two seeds; ALiBi at the longer context is refused.
Json results_of_study() {
  Json r{{"name", "positions"},
         {"title", "Positions <1>"},
         {"question", "Which extrapolates?"},
         {"size", "quick"},
         {"protocol", {"Trained on one text.", "Measured on another."}},
         {"data", "plays"},
         {"command", "transept study positions --quick"}};
  r["equal"] = Json::parse(R"([{"what": "tokens", "among": "trained models", "value": "1,048,576", "count": 18},
                               {"what": "seeds", "among": "all", "value": 2, "count": 18}])");
  r["machine"] = Json::parse(R"({"cpu": "CPU <2>", "processors": 2, "memory_bytes": 1073741824, "system": "Linux",
                                 "instruction_set": "avx2", "commit": "abc"})");
  for (const std::string position : {"rope", "alibi"}) {
    r["models"].push_back({{"axes", {{"position", position}}},
                           {"differs", {{"position.kind", position}}},
                           {"parameters", 820000},
                           {"train_flops_per_token", 5e6},
                           {"spec", {{"name", position}}}});
    for (const int context : {256, 128}) {
      const Json axes = axes_of(position, context);
      const double base = context / 64.0 + (position == "rope" ? 1 : 0);
      if (position == "alibi" && context == 256) {
        for (const int seed : {0, 1}) r["cells"].push_back({{"axes", axes}, {"seed", seed}, {"refused", "too long"}});
        continue;
      }
      for (const int seed : {0, 1}) {
        Json cell{{"axes", axes}, {"seed", seed}, {"metrics", {{"perplexity", base + seed}, {"loss", nullptr}}}};
        cell["curves"]["by_position"] = {{"x", {0, 1, 2}}, {"y", {base + seed, base + 3 * seed, nullptr}}};
        if (context == 128) {
          const auto map = [](const char* name, const char* values) {
            return Json{
                {"name", name}, {"rows", {"a", " b"}}, {"columns", {"a", " b"}}, {"values", Json::parse(values)}};
          };
          cell["maps"] = {map("layer 0, head 0", "[[1, null], [0.25, 0.75]]"),
                          map("layer 0, head 1", "[[0.5, null], [0.125, 0.875]]")};
        }
        r["cells"].push_back(std::move(cell));
      }
      r["summary"].push_back(
          {{"axes", axes}, {"metric", "perplexity"}, {"mean", base + 0.5}, {"sd", 0.7071}, {"n", 2}});
      r["summary"].push_back({{"axes", axes}, {"metric", "nats"}, {"mean", base}, {"sd", nullptr}, {"n", 1}});
    }
  }
  r["charts"] = Json::parse(R"([
    {"title": "Lines", "kind": "lines", "metric": "perplexity", "x": "context", "series": ["position"], "log_x": true,
     "log_y": true, "y_label": "Perplexity", "x_label": "Context", "caption": "A caption."},
    {"title": "Bars", "kind": "bars", "metric": "perplexity", "x": "position", "series": [], "where": {"context": [128]}},
    {"title": "Curve", "kind": "curve", "curve": "by_position", "series": ["position"], "where": {"context": 128}},
    {"title": "Maps", "kind": "maps", "where": {"position": "rope"}},
    {"title": "No metric", "kind": "lines", "metric": "speed", "x": "context"},
    {"title": "No axis", "kind": "bars", "metric": "perplexity", "x": "heads"},
    {"title": "No value", "kind": "bars", "metric": "perplexity", "x": "context", "where": {"position": "none"}},
    {"title": "No number", "kind": "lines", "metric": "perplexity", "x": "position"},
    {"title": "No curve", "kind": "curve", "curve": "by_layer"}
  ])");
  r["figures"] = Json::parse(R"([
    {"label": "RoPE", "metric": "perplexity", "where": {"position": "rope", "context": 128}, "note": "at 128"},
    {"label": "Against ALiBi", "metric": "nats", "where": {"position": "rope", "context": 128},
     "over": {"position": "alibi", "context": 128}},
    {"label": "Unknown", "metric": "perplexity", "where": {"position": "t5"}},
    {"label": "Over nothing", "metric": "perplexity", "where": {"position": "rope"}, "over": {"position": "t5"}},
    {"label": "Way", "metric": "perplexity", "where": {"position": "alibi", "context": 128},
     "from": {"position": "rope", "context": 256}, "to": {"position": "rope", "context": 128}},
    {"label": "Way to nothing", "metric": "perplexity", "where": {"position": "rope", "context": 128},
     "from": {"position": "rope", "context": 256}, "to": {"position": "t5"}}
  ])");
  return r;
}

template <class Block>
std::vector<Block> blocks(const ReportPage& page) {
  std::vector<Block> found;
  for (const Section& section : page.sections) {
    for (const ReportBlock& b : section.blocks) {
      if (const Block* block = std::get_if<Block>(&b)) found.push_back(*block);
    }
  }
  return found;
}

const Section& section(const ReportPage& page, const std::string& title) {
  for (const Section& s : page.sections) {
    if (s.title == title) return s;
  }
  throw std::runtime_error("no section " + title);
}

std::string row_text(const std::vector<Cell>& row) {
  std::string out;
  for (const Cell& cell : row) out += (out.empty() ? "" : " | ") + cell.text;
  return out;
}

TEST(StudyReport, HeadAndFigures) {
  const ReportPage page = study_report_page(results_of_study());
  EXPECT_EQ(page.title, "Positions <1>");
  EXPECT_EQ(page.subtitle, "Which extrapolates?");
  EXPECT_EQ(page.command, "transept study positions --quick");
  EXPECT_EQ(page.machine.cpu, "CPU <2>");
  EXPECT_EQ(page.machine.memory_bytes, 1 << 30);
  ASSERT_EQ(page.figures.size(), 6u);
  EXPECT_EQ(page.figures[0].value, "3.50 ± 0.71");
  EXPECT_EQ(page.figures[0].note, "at 128");
  EXPECT_EQ(page.figures[1].value, "1.500 ×");
  EXPECT_EQ(page.figures[2].value, "–");
  EXPECT_EQ(page.figures[3].value, "–");
  EXPECT_EQ(page.figures[4].value, "150.0 %");
  EXPECT_EQ(page.figures[5].value, "–");
}

TEST(StudyReport, LinesHaveBandsAndAscend) {
  const auto lines = blocks<LineChart>(study_report_page(results_of_study()));
  ASSERT_EQ(lines.size(), 2u);
  const LineChart& chart = lines[0];
  EXPECT_EQ(chart.caption, "A caption. Bands: mean ± standard deviation over 2 seeds.");
  EXPECT_TRUE(chart.x.log && chart.y.log);
  EXPECT_EQ(chart.x.label, "Context");
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].name, "rope");
  EXPECT_EQ(chart.series[0].x, (std::vector<double>{128, 256}));
  EXPECT_EQ(chart.series[0].y, (std::vector<double>{3.5, 5.5}));
  EXPECT_NEAR(chart.series[0].upper[1] - chart.series[0].lower[1], 2 * 0.7071, 1e-12);
  EXPECT_EQ(chart.series[1].x, (std::vector<double>{128}));
}

TEST(StudyReport, BarsHaveWhiskers) {
  const auto bars = blocks<BarChart>(study_report_page(results_of_study()));
  ASSERT_EQ(bars.size(), 1u);
  EXPECT_EQ(bars[0].categories, (std::vector<std::string>{"rope", "alibi"}));
  ASSERT_EQ(bars[0].series.size(), 1u);
  EXPECT_EQ(bars[0].series[0].values, (std::vector<double>{3.5, 2.5}));
  EXPECT_EQ(bars[0].series[0].errors, (std::vector<double>{0.7071, 0.7071}));
}

TEST(StudyReport, CurvesAreMeansOverSeeds) {
  const LineChart curve = blocks<LineChart>(study_report_page(results_of_study())).at(1);
  ASSERT_EQ(curve.series.size(), 2u);
  const Series& rope = curve.series[0];  // 3 and 4; 3 and 6; none
  EXPECT_EQ(rope.x, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(rope.y[0], 3.5);
  EXPECT_EQ(rope.y[1], 4.5);
  EXPECT_TRUE(std::isnan(rope.y[2]));
  EXPECT_DOUBLE_EQ(rope.upper[1], 4.5 + std::sqrt(4.5));
  EXPECT_DOUBLE_EQ(rope.lower[1], 4.5 - std::sqrt(4.5));
}

TEST(StudyReport, MapsAreOfTheFirstSeed) {
  const auto maps = blocks<HeatMaps>(study_report_page(results_of_study()));
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].maps.size(), 2u);
  EXPECT_EQ(maps[0].rows, (std::vector<std::string>{"a", "␣b"}));
  EXPECT_EQ(maps[0].maps[1].name, "layer 0, head 1");
  EXPECT_EQ(maps[0].maps[1].weights[2], 0.125);
  EXPECT_TRUE(std::isnan(maps[0].maps[1].weights[1]));
}

TEST(StudyReport, LargeMapsAreCut) {
  Json r = results_of_study();
  Json labels = Json::array(), values = Json::array(), row = Json::array();
  for (int i = 0; i < 100; ++i) {
    labels.push_back(std::to_string(i));
    row.push_back(i / 100.0);
  }
  for (int i = 0; i < 70; ++i) values.push_back(row);
  Json map{{"name", "m"}, {"rows", labels}, {"columns", labels}, {"values", values}};
  map["rows"].erase(map["rows"].begin() + 70, map["rows"].end());
  r["cells"][2]["maps"] = Json::array();
  for (int i = 0; i < 40; ++i) r["cells"][2]["maps"].push_back(map);
  const HeatMaps maps = blocks<HeatMaps>(study_report_page(r)).at(0);
  EXPECT_EQ(maps.rows.size(), kMaxHeatMapSide);
  EXPECT_EQ(maps.columns.size(), kMaxHeatMapSide);
  EXPECT_EQ(maps.maps.size(), kMaxHeatMaps);
  ASSERT_EQ(maps.maps[0].weights.size(), kMaxHeatMapSide * kMaxHeatMapSide);
  EXPECT_EQ(maps.maps[0].weights[kMaxHeatMapSide + 3], 0.03);
  EXPECT_NE(maps.caption.find("Of 70 by 100 cells the first 64 by 64 are shown. 8 more maps"), std::string::npos)
      << maps.caption;
}

TEST(StudyReport, WhatCannotBeDrawnIsSaid) {
  std::vector<std::string> said;
  for (const Paragraph& p : blocks<Paragraph>(study_report_page(results_of_study()))) said.push_back(p.text);
  for (const char* line : {"“No metric” is left out: nothing was measured of the metric “speed”.",
                           "“No axis” is left out: no row of the metric “perplexity” has the axis “heads”.",
                           "“No value” is left out: no row has the values that it asks for.",
                           "“No number” is left out: “rope” is no number on the axis “position”.",
                           "“No curve” is left out: nothing was measured of the curve “by_layer”."}) {
    EXPECT_NE(std::find(said.begin(), said.end(), line), said.end()) << line;
  }
}

// A chart that names fewer axes than its rows differ in must not lay one value over another.
TEST(StudyReport, UnnamedAxesTellSeriesApart) {
  Json r = results_of_study();
  r["charts"] = Json::parse(R"([{"title": "t", "kind": "bars", "metric": "perplexity", "x": "position"}])");
  const BarChart chart = blocks<BarChart>(study_report_page(r)).at(0);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].name, "context 256");
  EXPECT_EQ(chart.series[1].name, "context 128");
  EXPECT_TRUE(std::isnan(chart.series[0].values[1]));
}

TEST(StudyReport, OneSeedHasNoSpread) {
  Json r = results_of_study();
  for (Json& row : r["summary"]) row["n"] = 1;
  const ReportPage page = study_report_page(r);
  EXPECT_EQ(page.figures[0].value, "3.500");
  EXPECT_TRUE(blocks<LineChart>(page).at(0).series[0].lower.empty());
  EXPECT_NE(blocks<LineChart>(page).at(0).caption.find("One seed, no spread."), std::string::npos);
  EXPECT_TRUE(blocks<BarChart>(page).at(0).series[0].errors.empty());
  EXPECT_EQ(blocks<Paragraph>(page).at(0).text, "Size: quick. 6 measured cells; one seed, no spread.");
}

TEST(StudyReport, Tables) {
  const ReportPage page = study_report_page(results_of_study());
  const auto table = [&](const std::string& title) { return std::get<Table>(section(page, title).blocks.at(0)); };
  const Table refused = table("Refused");
  ASSERT_EQ(refused.rows.size(), 1u);
  EXPECT_EQ(row_text(refused.rows[0]), "alibi | 256 | 2 | too long");
  const Table means = table("All means");
  ASSERT_EQ(means.columns.size(), 5u);
  EXPECT_FALSE(means.columns[0].numeric);
  EXPECT_TRUE(means.columns[1].numeric);
  ASSERT_EQ(means.rows.size(), 3u);
  EXPECT_EQ(row_text(means.rows[0]), "rope | 256 | 5.50 ± 0.71 | 5 | 1 to 2");
  EXPECT_EQ(row_text(table("What is equal").rows[0]), "tokens | 1,048,576 | trained models | 18");
  EXPECT_EQ(row_text(table("What is equal").rows[1]), "seeds | 2 | all | 18");
  EXPECT_EQ(row_text(table("What differs").rows[1]), "alibi | alibi | 820,000 | 5.00 M");
  EXPECT_EQ(std::get<Code>(section(page, "What differs").blocks.at(2)).title, "The full spec of position = alibi");
  EXPECT_EQ(std::get<Paragraph>(section(page, "Protocol").blocks.at(0)).text,
            "Trained on one text. Measured on another.");
}

TEST(StudyReport, WholeAndEmptyPagesAreWellFormed) {
  const auto path = std::filesystem::temp_directory_path() / ("transept_study_" + std::to_string(::getpid()) + ".html");
  for (const Json& results : {results_of_study(), Json::object()}) {
    write_report(path, study_report_page(results));
    const CheckedPage page = check_page(read_file(path, 1 << 24));
    EXPECT_TRUE(page.problems.empty()) << page.problems[0];
    EXPECT_EQ(page.all("figure", "maps").size(), results.empty() ? 0u : 1u);
  }
  std::filesystem::remove(path);
  // tests/e2e/test_pages.py names a file, and opens it in a browser.
  if (const char* kept = std::getenv("TRANSEPT_STUDY_PAGE")) write_report(kept, study_report_page(results_of_study()));
}

TEST(StudyReport, OtherFormsAreRefusedAllAtOnce) {
  Json r = results_of_study();
  r["title"] = Json::array();
  r["cells"][1]["seed"] = "x";
  r["cells"][2]["axes"]["position"] = true;
  r["cells"][2]["maps"][0]["values"][1] = Json::array({1});
  r["cells"][2]["curves"]["by_position"]["x"] = Json::array({1});
  r["charts"][0]["kind"] = "pie";
  r["charts"][1].erase("x");
  r["summary"][0] = 3;
  r["machine"] = "m";
  try {
    study_report_page(r);
    FAIL();
  } catch (const InputError& error) {
    std::vector<std::string> places;
    for (const Problem& p : error.problems()) places.push_back(p.where);
    for (const char* place :
         {"title", "cells[1].seed", "cells[2].axes.position", "cells[2].maps[0].values[1]",
          "cells[2].curves.by_position.y", "charts[0].kind", "charts[1].x", "summary[0]", "machine"}) {
      EXPECT_NE(std::find(places.begin(), places.end(), place), places.end()) << place << "\n" << error.what();
    }
  }
  for (const Json& none : {Json(), Json(3), Json::array()}) EXPECT_THROW(study_report_page(none), InputError);
}

TEST(FormatSpread, DigitsFollowTheSpread) {
  EXPECT_EQ(format_spread(5.10234, 0.0312), "5.102 ± 0.031");
  EXPECT_EQ(format_spread(-5.10234, 0.312), "-5.10 ± 0.31");
  EXPECT_EQ(format_spread(1234.56, 23.4), "1,235 ± 23");
  EXPECT_EQ(format_spread(1.5, NAN), "1.500");
  EXPECT_EQ(format_spread(2, 0), "2 ± 0");
  EXPECT_EQ(format_spread(3e-5, 1e-6), "3e-5 ± 1e-6");
  EXPECT_EQ(format_spread(NAN, 1), "–");
}

}  // namespace
}  // namespace transept
