// The whole page: well formed, closed to the outside, and deaf to markup in anything it is given.
#include "study/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "page_checker.h"
#include "study/page_assets.h"

namespace transept {
namespace {

ReportPage page_of(const std::string& text) {
  ReportPage page;
  page.title = page.subtitle = page.command = text;
  page.figures = {{text, text, text}};
  page.machine = {text, 2, 1 << 30, text, text, text};
  LineChart lines{text, text, {text}, {text}, {{text, {1, 2, 3}, {1, NAN, 2}}, {text, {1}, {2}, {1}, {3}}}};
  LineChart wide = lines;
  wide.wide = true;
  BarChart bars{text, text, text, {text, text}, {{text, {1, 2}, {0.1, NAN}}, {text, {3, NAN}}}};
  PointChart points{text, text, {text}, {text}, {{text, {1, NAN}, {2, 3}, {text, text}}}};
  HeatMaps maps{text, text, text, text, text, {text, text}, {text}, {{text, {0.5, NAN}}, {text, {0, 1}}}};
  Table table{text, {{text}, {text, true}}, {{text, 1.5}, {text, {text, NAN}}}, text};
  Section section{text,
                  {Paragraph{text}, wide, lines, points, bars, maps, table, Samples{{{text, text, text}}},
                   Code{text, text, true}, Code{text, text}}};
  page.sections = {section, section, {text, {LineChart{text, "", {text}, {text}, {}}}}};
  return page;
}

std::string first(const CheckedPage& page) { return page.problems.empty() ? "" : page.problems[0]; }

TEST(Report, WellFormed) {
  const CheckedPage page = check_page(render_report(page_of("A plain text")));
  EXPECT_TRUE(page.problems.empty()) << first(page);
  EXPECT_EQ(page.all("h1").size(), 1u);
  EXPECT_EQ(page.all("main").size(), 1u);
  EXPECT_EQ(page.all("header").size(), 1u);
  EXPECT_EQ(page.all("footer").size(), 1u);
  EXPECT_EQ(page.all("section").size(), 4u);  // three, and how to repeat it
  EXPECT_EQ(page.all("script").size(), 1u);
  // Two sizes a chart, four where it is wide; two of the large map, and one a map.
  EXPECT_EQ(page.all("svg").size(), 2u * (4 + 2 + 2 + 2 + 2 + 2) + 2);
  for (const Element& svg : page.all("svg")) EXPECT_EQ(svg.attributes.at("role"), "img");
}

TEST(Report, Empty) {
  const CheckedPage page = check_page(render_report({}));
  EXPECT_TRUE(page.problems.empty()) << first(page);
}

TEST(Report, HostileTextAddsNoElement) {
  for (const char* hostile : {"</script><img onerror=alert(1) src=x>", "\" onload=\"alert(1)",
                              "</style><script>alert(1)</script>", "<!--", "]]>", "' autofocus onfocus='alert(1)",
                              "</title><h1>", "&lt;b&gt;", "\xff\xfe<b>", "{}{0}%s", "</pre></figure><section>"}) {
    const std::string html = render_report(page_of(hostile));
    const CheckedPage page = check_page(html);
    // As long as the hostile text: the room for ticks depends on the length of names.
    const CheckedPage plain = check_page(render_report(page_of(std::string(std::string_view(hostile).size(), 'p'))));
    EXPECT_TRUE(page.problems.empty()) << hostile << ": " << first(page);
    ASSERT_EQ(page.elements.size(), plain.elements.size()) << hostile;
    for (size_t i = 0; i < page.elements.size(); ++i) {
      EXPECT_EQ(page.elements[i].tag, plain.elements[i].tag);
      EXPECT_EQ(page.elements[i].attributes.size(), plain.elements[i].attributes.size()) << page.elements[i].tag;
    }
    EXPECT_EQ(page.all("script").at(0).text, page_script());
  }
}

TEST(Report, TableOfAChartHoldsItsData) {
  ReportPage report;
  LineChart chart{"c", "", {"Step"}, {"y"}, {{"a", {1, 2}, {0.1, NAN}}, {"b", {2, 3}, {5, 6}, {4, 5}, {6, 7}}}};
  report.sections = {{"s", {chart}}};
  const CheckedPage page = check_page(render_report(report));
  const auto heads = page.all("th");
  ASSERT_EQ(heads.size(), 5u);
  EXPECT_EQ(heads[0].text, "Step");
  EXPECT_EQ(heads[1].attributes.at("data-series"), "0");
  EXPECT_EQ(heads[2].attributes.at("data-series"), "1");
  EXPECT_EQ(heads[3].text, "b, lower");
  EXPECT_EQ(heads[3].attributes.count("data-series"), 0u);
  std::string values;
  for (const Element& td : page.all("td"))
    values += (td.attributes.count("data-v") ? td.attributes.at("data-v") : "-") + " ";
  EXPECT_EQ(values, "1 0.1 - - - 2 - 5 4 6 3 - 6 5 7 ");
}

TEST(Report, NoTwoRegionsHaveOneName) {
  std::set<std::string> names;
  size_t regions = 0;
  for (const Element& e : check_page(render_report(page_of("text"))).all("div", "scroll")) {
    EXPECT_EQ(e.attributes.at("role"), "region");
    EXPECT_EQ(e.attributes.at("tabindex"), "0");
    names.insert(e.attributes.at("aria-label"));
    ++regions;
  }
  EXPECT_EQ(regions, 2u * (4 + 1 + 1));  // four charts, the maps and the table of two sections
  EXPECT_EQ(names.size(), regions);
}

// On paper a wide table's cells stand without their heads.
TEST(Report, CellsOfWideTablesCarryTheirColumns) {
  for (const size_t columns : {8u, 9u}) {
    Table table{"t", {}, {{}}};
    for (size_t i = 0; i < columns; ++i) {
      table.columns.push_back({"column " + std::to_string(i)});
      table.rows[0].emplace_back("x");
    }
    ReportPage report;
    report.sections = {{"s", {table}}};
    const CheckedPage page = check_page(render_report(report));
    EXPECT_EQ(page.all("div", "cards").size(), columns == 9 ? 1u : 0u);
    const auto cells = page.all("td");
    ASSERT_EQ(cells.size(), columns - 1);
    const auto name = cells.back().attributes.find("data-name");
    EXPECT_EQ(name == cells.back().attributes.end() ? "" : name->second, columns == 9 ? "column 8" : "");
  }
}

TEST(Report, MapsAreLargeAndSmall) {
  HeatMaps maps{"Attention", "", "Query", "Key", "Weight", {"a", "\"b"}, {"x", "y"}, {}};
  maps.maps = {{"layer 0", {0.5, NAN, 0.25, 0.75}}, {"layer 1", {1, 0, 0, 1}}};
  ReportPage report;
  report.sections = {{"s", {maps}}};
  const CheckedPage page = check_page(render_report(report));
  EXPECT_TRUE(page.problems.empty()) << first(page);
  const auto figures = page.all("figure", "maps");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].attributes.at("data-rows"), "[&quot;a&quot;,&quot;\\&quot;b&quot;]");
  const auto small = page.all("div", "map");
  ASSERT_EQ(small.size(), 2u);
  EXPECT_EQ(small[0].attributes.at("data-weights"), "5000 - 2500 7500");
  EXPECT_EQ(page.all("span", "name").at(1).text, "layer 1");
  EXPECT_EQ(page.all("p", "chosen").at(0).text, "layer 0");
  EXPECT_FALSE(page.all("div", "thumbnails").at(0).attributes.count("hidden"));
  maps.per_row = 2;
  report.sections = {{"s", {maps}}};
  EXPECT_EQ(check_page(render_report(report)).all("div", "per2").size(), 1u);
  maps.maps.resize(1);
  report.sections = {{"s", {maps}}};
  EXPECT_TRUE(check_page(render_report(report)).all("div", "thumbnails").at(0).attributes.count("hidden"));
  maps.maps.clear();
  report.sections = {{"s", {maps}}};
  EXPECT_TRUE(check_page(render_report(report)).all("figure").empty());
}

TEST(Report, IsWrittenWhole) {
  const auto path =
      std::filesystem::temp_directory_path() / ("transept_report_" + std::to_string(::getpid()) + ".html");
  write_report(path, page_of("text"));
  EXPECT_EQ(read_file(path, 1 << 24), render_report(page_of("text")));
  std::filesystem::remove(path);
}

// The checker itself must catch what it is there for.
TEST(PageChecker, CatchesPlantedErrors) {
  EXPECT_TRUE(check_page("<!DOCTYPE html><p id=\"a\">x &amp; y</p><br>").problems.empty());
  for (const char* bad :
       {"<p>", "</p>", "<p><b></p></b>", "<p id=\"a\"></p><b id=\"a\"></b>", "<p>a < b</p>", "<p>a > b</p>",
        "<p>a & b and so on</p>", "<p aria-labelledby=\"none\"></p>", "<img src=\"x\">", "<a href=\"x\"></a>",
        "<p onclick=\"x\"></p>", "<p>https://x</p>", "<style>@import 'x'</style>", "<style>a{b:url(x)}</style>",
        "<p title=\"<b>\"></p>", "<p title=\"></p>", "<p a=\"1\" a=\"2\"></p>"}) {
    EXPECT_FALSE(check_page(bad).problems.empty()) << bad;
  }
}

}  // namespace
}  // namespace transept
