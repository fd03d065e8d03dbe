// The page of a training run, from whole, partial and absent inputs.
#include "study/training_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "page_checker.h"

namespace transept {
namespace {

TrainingReport full_report() {
  TrainingReport r;
  r.spec = Json::parse(R"({"name": "tiny <1>", "hidden_size": 64})");
  r.plan = Json::parse(R"({"parameters": {"total": 1000}, "memory": {"weights": 4000, "peak_training": 20000},
                           "flops": {"train_per_token": 6000}})");
  r.measured = Json::parse(R"({"parameters": {"total": 1000}, "memory": {"weights": 4000, "peak_training": 21000},
                               "flops": {"train_per_step": 600000}, "flops_per_second": 2.5e9, "tokens_per_second": 3754.4, "seconds": 192})");
  r.tokens_per_step = 100;
  for (int step = 1; step <= 20; ++step) {
    Json record{
        {"step", step}, {"tokens", step * 100}, {"loss", 5.0 / step}, {"lr", 1e-3}, {"tokens_per_second", 3700}};
    if (step % 10 == 0) record["val_loss"] = 5.5 / step;
    r.metrics.push_back(record);
  }
  r.samples = {{"greedy", "To be", " or not"}};
  r.data = "plays";
  r.command = "transept train tiny.json";
  r.machine = {"CPU", 2, 1 << 30, "Linux", "avx2", "abc"};
  return r;
}

std::vector<std::string> row(const ReportPage& page, const std::string& name) {
  for (const Section& s : page.sections) {
    for (const ReportBlock& b : s.blocks) {
      const Table* t = std::get_if<Table>(&b);
      if (!t) continue;
      for (const auto& r : t->rows) {
        if (r[0].text == name) return {r[1].text, r[2].text, r[3].text};
      }
    }
  }
  return {};
}

TEST(TrainingReport, PlannedBesideMeasured) {
  const ReportPage page = training_report_page(full_report());
  using Row = std::vector<std::string>;
  EXPECT_EQ(row(page, "Parameters"), (Row{"1,000", "1,000", "exact"}));
  EXPECT_EQ(row(page, "Peak memory"), (Row{"19.5 KiB", "20.5 KiB", "+5.00 %"}));
  EXPECT_EQ(row(page, "Gradients"), (Row{"–", "–", "–"}));
  EXPECT_EQ(row(page, "Work a step"), (Row{"600 kFLOP", "600 kFLOP", "exact"}));
  EXPECT_EQ(row(page, "Rate of work"), (Row{"–", "2.50 GFLOP/s", "–"}));
  EXPECT_EQ(row(page, "Tokens a second"), (Row{"–", "3,754", "–"}));
}

TEST(TrainingReport, CurvesOverTokens) {
  const ReportPage page = training_report_page(full_report());
  const LineChart& loss = std::get<LineChart>(page.sections.at(0).blocks.at(0));
  EXPECT_EQ(loss.x.label, "Tokens");
  ASSERT_EQ(loss.series.size(), 2u);
  EXPECT_EQ(loss.series[0].x.size(), 20u);
  EXPECT_EQ(loss.series[1].x, (std::vector<double>{1000, 2000}));
  EXPECT_EQ(loss.series[1].y, (std::vector<double>{0.55, 0.275}));
  EXPECT_EQ(page.title, "tiny <1>");
  EXPECT_EQ(page.subtitle, "A training run on plays: 20 steps, 2.00 k tokens");
  EXPECT_EQ(page.figures.at(0).value, "0.2750");
}

TEST(TrainingReport, NullLossIsAGapAndStepsDoWithoutTokens) {
  TrainingReport r = full_report();
  r.metrics = {Json{{"step", 1}, {"loss", 2}}, Json{{"step", 2}, {"loss", nullptr}}, Json{{"step", 3}, {"loss", 1}},
               Json{{"loss", 1}}, Json(3)};
  const ReportPage page = training_report_page(r);
  const LineChart& loss = std::get<LineChart>(page.sections.at(0).blocks.at(0));
  EXPECT_EQ(loss.x.label, "Step");
  ASSERT_EQ(loss.series.size(), 1u);
  ASSERT_EQ(loss.series[0].y.size(), 3u);
  EXPECT_TRUE(std::isnan(loss.series[0].y[1]));
}

TEST(TrainingReport, LongRunsAreThinnedWithTheirLastPoint) {
  TrainingReport r = full_report();
  r.metrics.clear();
  for (int step = 1; step <= 50000; ++step) r.metrics.push_back(Json{{"step", step}, {"loss", 1.0 / step}});
  const LineChart loss = std::get<LineChart>(training_report_page(r).sections.at(0).blocks.at(0));
  EXPECT_LE(loss.series[0].x.size(), 1001u);
  EXPECT_GE(loss.series[0].x.size(), 900u);
  EXPECT_EQ(loss.series[0].x.back(), 50000);
  EXPECT_FALSE(loss.caption.empty());
}

TEST(TrainingReport, WholeAndEmptyPagesAreWellFormed) {
  for (const TrainingReport& r : {full_report(), TrainingReport{}}) {
    const CheckedPage page = check_page(render_report(training_report_page(r)));
    EXPECT_TRUE(page.problems.empty()) << page.problems[0];
  }
}

TEST(NumberAt, FollowsThePath) {
  const Json j = Json::parse(R"({"a": {"b": 2}, "c": "x", "d": null})");
  EXPECT_EQ(number_at(j, "a.b"), 2);
  for (const char* path : {"a", "a.c", "a.b.c", "c", "d", "", ".", "a..b"})
    EXPECT_TRUE(std::isnan(number_at(j, path))) << path;
  EXPECT_TRUE(std::isnan(number_at(Json(), "a")));
}

}  // namespace
}  // namespace transept
