// The page of scaling laws, with and without a fit and a smaller model.
#include "study/scaling_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "page_checker.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

ScalingReport plain_report(double flops = 5.76e23) {
  ScalingReport r;
  r.given = "5.76e+23 FLOPs";
  for (const ScalingLaw& law : published_laws()) r.rows.push_back({law, law.frontier.at_flops(flops)});
  r.set = "besiroglu";
  r.command = "transept scale --flops 5.76e23 --out page.html";
  r.machine = {"CPU", 2, 1 << 30, "Linux", "avx2", "abc"};
  return r;
}

ScalingReport full_report() {
  ScalingReport r = plain_report();
  const ScalingLaw& law = published_laws()[5];
  for (const double flops : {1e19, 1e20, 1e21}) {
    for (const double factor : {0.2, 0.5, 1.0, 2.0, 5.0}) {
      const double params = law.frontier.at_flops(flops).params * factor, tokens = flops / (6 * params);
      r.runs.push_back({params, tokens, law.loss->loss(params, tokens)});
    }
  }
  r.runs[3].loss *= 1.01;
  ThreadPool pool(1);
  r.runs_name = "runs <1>.csv";
  r.fit = fit_scaling_law(r.runs, {.resamples = 10, .flops = 5.76e23}, pool, r.runs_name);
  r.rows.push_back({law_of(*r.fit, r.runs_name), Frontier::of(r.fit->law).at_flops(5.76e23)});
  r.set = "fit";
  r.smaller = 20e9;
  r.served_tokens = 1e13;
  r.cost = {.train_mfu = 0.4, .serve_mfu = 0.1, .price_ratio = 0.5};
  return r;
}

const Section& section(const ReportPage& page, const std::string& title) {
  return *std::find_if(page.sections.begin(), page.sections.end(),
                       [&](const Section& s) { return s.title.find(title) != std::string::npos; });
}

TEST(ScalingReport, WellFormed) {
  ScalingReport extreme = plain_report(1e40), tiny = plain_report(1e6), impossible = plain_report();
  impossible.smaller = 1e9;
  for (const ScalingReport& r : {plain_report(), full_report(), extreme, tiny, impossible}) {
    const CheckedPage page = check_page(render_report(scaling_report_page(r)));
    EXPECT_TRUE(page.problems.empty()) << page.problems[0];
  }
}

TEST(ScalingReport, IsoFlopCurvesTouchTheirOptima) {
  const ReportPage page = scaling_report_page(plain_report());
  const LineChart& chart = std::get<LineChart>(section(page, "IsoFLOP").blocks.at(0));
  ASSERT_EQ(chart.series.size(), 6u);
  EXPECT_TRUE(chart.x.log);
  const Series& best = chart.series.back();
  for (size_t i = 0; i < 5; ++i) {
    const Series& curve = chart.series[i];
    const auto least = static_cast<size_t>(std::min_element(curve.y.begin(), curve.y.end()) - curve.y.begin());
    EXPECT_EQ(least, curve.x.size() / 2) << curve.name;
    EXPECT_NEAR(curve.x[least], best.x[i], best.x[i] * tolerance::kInvertedLoss);
    EXPECT_NEAR(curve.y[least], best.y[i], tolerance::kInvertedLoss);
  }
  EXPECT_EQ(chart.series[2].name, "5.76e+23 FLOPs");
}

TEST(ScalingReport, EverySetIsDrawnAndSourced) {
  const ReportPage page = scaling_report_page(full_report());
  const size_t sets = published_laws().size() + 1;
  for (const ReportBlock& block : section(page, "side by side").blocks)
    EXPECT_EQ(std::get<LineChart>(block).series.size(), sets);
  const auto& blocks = section(page, "Constants").blocks;
  const Table& constants = std::get<Table>(blocks.at(0));
  EXPECT_EQ(constants.rows.size(), sets);
  EXPECT_EQ(std::get<Table>(blocks.at(1)).rows.size(), sets);
  const auto& row = constants.rows.at(5);
  EXPECT_EQ(row[0].text, "besiroglu");
  EXPECT_EQ(row[4].text, "482.0 ± 124.5");
  EXPECT_EQ(constants.rows.at(1)[1].text, "0.5000 (0.4880–0.5020)");
}

TEST(ScalingReport, OverTrainingCurvesCrossAtTheBreakEven) {
  const ScalingReport r = full_report();
  const ReportPage page = scaling_report_page(r);
  const Section& over = section(page, "Over-training");
  const LineChart& relative = std::get<LineChart>(over.blocks.at(1));
  const auto smaller =
      std::find_if(relative.series.begin(), relative.series.end(), [](const Series& s) { return s.name == "20.0B"; });
  ASSERT_NE(smaller, relative.series.end());
  const double served = break_even(r.fit->law, r.rows.back().optimum, *r.smaller, r.cost, "").served_tokens;
  for (size_t i = 0; i < smaller->x.size(); ++i)
    EXPECT_EQ(smaller->y[i]<1, smaller->x[i]> served) << smaller->x[i] << " of " << served;
  EXPECT_THAT(std::get<Table>(over.blocks.at(2)).caption, HasSubstr("Utilization 0.4000 in training"));
  EXPECT_THAT(std::get<Paragraph>(over.blocks.at(3)).text, HasSubstr("For 10.0T served tokens"));
}

TEST(ScalingReport, FitShowsEveryRun) {
  const ScalingReport r = full_report();
  const ReportPage page = scaling_report_page(r);
  const Section& fit = section(page, "The fit");
  const Table& table = std::get<Table>(fit.blocks.at(0));
  EXPECT_EQ(table.rows.size(), kFitFigures.size());
  EXPECT_EQ(table.rows[3][1].number, r.fit->law.alpha);
  EXPECT_EQ(table.rows[3][2].number, r.fit->bootstrap->error[3]);
  const Series& residuals = std::get<LineChart>(fit.blocks.at(2)).series.at(0);
  EXPECT_EQ(std::count_if(residuals.y.begin(), residuals.y.end(), [](double y) { return std::isfinite(y); }),
            static_cast<int>(r.runs.size()));
  const double largest = *std::max_element(residuals.y.begin() + 1, residuals.y.end(),
                                           [](double x, double y) { return std::isnan(x) ? !std::isnan(y) : x < y; });
  EXPECT_GT(largest, 0.5);  // the planted run is 1 % off
}

}  // namespace
}  // namespace transept
