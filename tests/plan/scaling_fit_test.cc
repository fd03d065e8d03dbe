// A fit recovers the law that its runs were made from, with errors that cover it; readers of run files.
#include "plan/scaling_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "support/throws.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr double kBudget = 5.76e23;

const ScalingLaw& besiroglu() {
  const auto& laws = published_laws();
  return *std::find_if(laws.begin(), laws.end(), [](const ScalingLaw& l) { return l.name == "besiroglu"; });
}

// Runs as Hoffmann et al. made them: nine budgets from 6e18 to 3e21 FLOPs, sizes from a sixth to six times the optimum,
// the loss off by `noise` (standard deviation of its log).
std::vector<ScalingRun> made_runs(size_t count, double noise, uint64_t seed = 1) {
  constexpr std::array kBudgets{6e18, 1e19, 3e19, 6e19, 1e20, 3e20, 6e20, 1e21, 3e21};
  const CounterRng rng(seed, Stream::kTest);
  const size_t sizes = (count + kBudgets.size() - 1) / kBudgets.size();
  std::vector<ScalingRun> runs;
  for (size_t i = 0; i < count; ++i) {
    const double flops = kBudgets[i % kBudgets.size()];
    const double place = 2 * static_cast<double>(i / kBudgets.size()) / static_cast<double>(sizes - 1) - 1;
    const double params = besiroglu().frontier.at_flops(flops).params * std::pow(6, place);
    const double tokens = flops / (6 * params);
    runs.push_back({params, tokens, besiroglu().loss->loss(params, tokens) * std::exp(noise * rng.normal(i))});
  }
  return runs;
}

// With it the errors come out about as large as the published ones.
constexpr double kNoise = 0.01;

ScalingFit fit(const std::vector<ScalingRun>& runs, FitOptions options = {}, int threads = 2) {
  ThreadPool pool(threads);
  if (options.flops == 0) options.flops = kBudget;
  return fit_scaling_law(runs, options, pool, "runs.csv");
}

TEST(ScalingFit, ExactRunsGiveTheLawBack) {
  const FitFigures expected = fit_figures(*besiroglu().loss, kBudget);
  for (const size_t count : {18u, 240u}) {
    const ScalingFit f = fit(made_runs(count, 0), {.resamples = 0});
    for (size_t k = 0; k < kFitFigures.size(); ++k)
      EXPECT_NEAR(f.figures[k], expected[k], expected[k] * tolerance::kExactFit) << kFitFigures[k];
    EXPECT_FALSE(f.bootstrap);
    EXPECT_TRUE(f.warnings.empty());
  }
}

TEST(ScalingFit, PublishedEstimateWithItsErrors) {
  const ScalingFit f = fit(made_runs(240, kNoise));
  const FitFigures expected = fit_figures(*besiroglu().loss, kBudget);
  const ParametricLoss& published = *besiroglu().standard_error;
  const std::array<double, 6> errors{published.E,     published.A,    published.B,
                                     published.alpha, published.beta, *besiroglu().exponent_error};
  ASSERT_TRUE(f.bootstrap);
  EXPECT_EQ(f.bootstrap->resamples, 200);
  for (size_t k = 0; k < kFitFigures.size(); ++k) {
    const double error = f.bootstrap->error[k];
    EXPECT_NEAR(f.figures[k], expected[k], tolerance::kStandardErrors * error) << kFitFigures[k];
    EXPECT_LT(f.bootstrap->low[k], f.figures[k]) << kFitFigures[k];
    EXPECT_GT(f.bootstrap->high[k], f.figures[k]) << kFitFigures[k];
    if (k >= errors.size()) continue;
    EXPECT_LT(error, errors[k] * tolerance::kErrorFactor) << kFitFigures[k];
    EXPECT_GT(error, errors[k] / tolerance::kErrorFactor) << kFitFigures[k];
  }
  // The errors follow the noise.
  const ScalingFit quiet = fit(made_runs(240, kNoise / 10));
  for (size_t k = 0; k < kFitFigures.size(); ++k)
    EXPECT_LT(quiet.bootstrap->error[k], f.bootstrap->error[k] / 3) << kFitFigures[k];
}

TEST(ScalingFit, ResidualsAndObjective) {
  const std::vector<ScalingRun> runs = made_runs(90, kNoise);
  const ScalingFit f = fit(runs, {.resamples = 0});
  double sum = 0;
  ASSERT_EQ(f.residuals.size(), runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    const double r = std::log(runs[i].loss) - std::log(f.law.loss(runs[i].params, runs[i].tokens));
    EXPECT_NEAR(f.residuals[i], r, tolerance::kExactFit * kNoise);
    sum += std::abs(r) <= 1e-3 ? r * r / 2 : 1e-3 * (std::abs(r) - 0.5e-3);
  }
  EXPECT_NEAR(f.objective, sum, sum * tolerance::kExactFit);
  // A minimum: no constant moved by its hundredth of a percent does better.
  for (double ParametricLoss::* constant :
       {&ParametricLoss::E, &ParametricLoss::A, &ParametricLoss::B, &ParametricLoss::alpha, &ParametricLoss::beta}) {
    for (const double factor : {0.9999, 1.0001}) {
      ParametricLoss moved = f.law;
      moved.*constant *= factor;
      double other = 0;
      for (const ScalingRun& run : runs) {
        const double r = std::log(run.loss) - std::log(moved.loss(run.params, run.tokens));
        other += std::abs(r) <= 1e-3 ? r * r / 2 : 1e-3 * (std::abs(r) - 0.5e-3);
      }
      EXPECT_GE(other, sum * (1 - tolerance::kExactFit));
    }
  }
}

TEST(ScalingFit, LeavingOutShowsOutliers) {
  std::vector<ScalingRun> runs = made_runs(240, kNoise);
  const ScalingFit clean = fit(runs, {.resamples = 0});
  ASSERT_TRUE(clean.without_highest && clean.leave_one_out);
  EXPECT_EQ(clean.without_highest->count, 5u);
  EXPECT_EQ(clean.leave_one_out->tried, 240u);

  // Five young runs far above the law, as those that Besiroglu et al. left out.
  for (size_t i = 0; i < 5; ++i) runs.push_back({5e9 + 1e9 * static_cast<double>(i), 3e8, 5.5});
  const ScalingFit f = fit(runs, {.resamples = 0});
  ASSERT_TRUE(f.without_highest && f.leave_one_out);
  constexpr size_t kBeta = 4;
  ASSERT_EQ(kFitFigures[kBeta], "beta");
  const double moved = std::abs(f.figures[kBeta] - f.without_highest->figures[kBeta]);
  EXPECT_GT(moved, 5 * std::abs(clean.figures[kBeta] - clean.without_highest->figures[kBeta]));
  EXPECT_GE(f.leave_one_out->run[kBeta], 240u);
  EXPECT_GT(std::abs(f.leave_one_out->change[kBeta]), std::abs(clean.leave_one_out->change[kBeta]));
  for (size_t k = 0; k < kFitFigures.size(); ++k)
    EXPECT_NEAR(f.without_highest->figures[k], clean.figures[k], std::abs(clean.figures[k]) * tolerance::kExactFit);
}

TEST(ScalingFit, ThreadsDoNotMatterAndSeedsDo) {
  const std::vector<ScalingRun> runs = made_runs(60, kNoise);
  const ScalingFit one = fit(runs, {.seed = 7, .resamples = 20}, 1), four = fit(runs, {.seed = 7, .resamples = 20}, 4);
  EXPECT_EQ(to_json(one), to_json(four));
  const ScalingFit other = fit(runs, {.seed = 8, .resamples = 20});
  EXPECT_EQ(one.figures, other.figures);
  EXPECT_NE(one.bootstrap->error, other.bootstrap->error);
}

TEST(ScalingFit, BudgetOfTheRatio) {
  const std::vector<ScalingRun> runs = made_runs(45, 0);
  ThreadPool pool(1);
  const ScalingFit f = fit_scaling_law(runs, {.resamples = 0}, pool, "runs.csv");
  EXPECT_NEAR(f.flops, 3e21, 3e21 * tolerance::kClosedForm);
}

TEST(ScalingFit, AsASet) {
  const ScalingFit f = fit(made_runs(60, kNoise), {.resamples = 20});
  const ScalingLaw law = law_of(f, "runs.csv");
  EXPECT_EQ(law.name, "fit");
  EXPECT_EQ(law.standard_error->B, f.bootstrap->error[2]);
  EXPECT_EQ(law.frontier.at_flops(kBudget).tokens_per_param(), f.figures.back());
  const Json j = to_json(f);
  EXPECT_EQ(j.at("runs"), 60);
  EXPECT_EQ(j.at("figures").at("alpha"), f.law.alpha);
  EXPECT_EQ(j.at("leave_one_out").at("largest_change").size(), kFitFigures.size());
}

TEST(ScalingFit, RunsThatDetermineNothing) {
  const auto refused = [](std::vector<ScalingRun> runs) { return input_error([&] { fit(runs, {.resamples = 0}); }); };
  const std::vector<ScalingRun> good = made_runs(18, 0);
  EXPECT_THAT(refused({good.begin(), good.begin() + 5}), HasSubstr("holds 5 different runs"));
  EXPECT_THAT(refused({}), HasSubstr("holds 0 different runs"));
  EXPECT_THAT(refused(std::vector<ScalingRun>(50, good[0])),
              AllOf(HasSubstr("holds 1 different runs"), HasSubstr("1 different value of params"),
                    HasSubstr("1 different value of tokens"), HasSubstr("every loss is the same")));
  std::vector<ScalingRun> runs = good;
  for (ScalingRun& r : runs) r.params = 1e9;
  EXPECT_THAT(refused(runs), HasSubstr("1 different value of params"));
  runs = good;
  for (ScalingRun& r : runs) r.tokens = 20 * r.params;
  EXPECT_THAT(refused(runs), HasSubstr("tokens follow params"));
}

TEST(ScalingFit, RunsThatDetermineLittle) {
  // The loss knows nothing of the tokens, or nothing of the size: a warning says so.
  std::vector<ScalingRun> runs = made_runs(27, 0);
  for (ScalingRun& r : runs) r.loss = 1.8 + 2000 / std::pow(r.tokens, 0.35);
  EXPECT_THAT(fit(runs, {.resamples = 0}).warnings, Contains(HasSubstr("hardly falls with params")));
  for (ScalingRun& r : runs) r.loss = 1.8 + 400 / std::pow(r.params, 0.35);
  const ScalingFit f = fit(runs, {.resamples = 5});
  EXPECT_THAT(f.warnings, Contains(HasSubstr("hardly falls with tokens")));
  // Without a floor under the loss E runs to zero.
  std::vector<ScalingRun> floorless = made_runs(27, 0);
  for (ScalingRun& r : floorless) r.loss = 400 / std::pow(r.params, 0.35) + 2000 / std::pow(r.tokens, 0.35);
  EXPECT_THAT(fit(floorless, {.resamples = 0}).warnings, Contains(HasSubstr("E ran to zero")));
  EXPECT_FALSE(law_of(f, "").note.empty());
  // Six runs are few, and extreme ones no reason to fail.
  const std::vector<ScalingRun> more = made_runs(18, kNoise);
  runs = {{1, 1e24, 1000}, more[1], more[4], more[9], more[14], {1e20, 1, 1e-6}};
  EXPECT_NO_THROW(fit(runs, {.resamples = 5}));
}

TEST(ScalingRuns, FormsOfAFile) {
  const std::vector<ScalingRun> expected{{7e9, 1.4e11, 2.1}, {1e9, 2e10, 2.5}};
  for (const char* text :
       {"params,tokens,loss\n7e9,1.4e11,2.1\n1e9,2e10,2.5\n",
        "loss,name,tokens,params\r\n2.1,\"a, b\",140B,7B\r\n\r\n2.5,c,20B,1B",
        "\xef\xbb\xbfparams , flops , loss\n 7B , 5.88e21 , 2.1 \n1B,1.2e20,2.5\n",
        "params,tokens,flops,loss\n7B,140B,,2.1\n1B,20B,junk,2.5\n",
        "{\"params\": 7e9, \"tokens\": 1.4e11, \"loss\": 2.1}\n{\"loss\": 2.5, \"params\": \"1B\", "
        "\"tokens\": 20000000000, \"x\": []}\n",
        " [{\"params\": 7e9, \"flops\": 5.88e21, \"loss\": 2.1},\n{\"params\": 1e9, \"flops\": 1.2e20, "
        "\"loss\": 2.5}]"}) {
    EXPECT_EQ(parse_runs(text, "f"), expected) << text;
  }
}

TEST(ScalingRuns, EveryProblemWithItsLine) {
  const auto refused = [](const std::string& text) { return input_error([&] { parse_runs(text, "f"); }); };
  EXPECT_THAT(refused(""), HasSubstr("holds no runs"));
  EXPECT_THAT(refused("params,tokens\n1,2"), HasSubstr("lacks a column"));
  EXPECT_THAT(refused("params,params,tokens,loss\n1,1,2,3"), HasSubstr("params stands twice"));
  EXPECT_THAT(refused("params,tokens,loss\n1B,20B,nan\n1B,20B\n-1,20B,2\n1B,20B,2\n1e300,0,inf\n"),
              AllOf(HasSubstr("f:2: loss"), HasSubstr("f:3: has 2 cells"), HasSubstr("f:4: params"),
                    HasSubstr("f:6: tokens"), HasSubstr("f:6: loss")));
  EXPECT_THAT(refused("params,tokens,loss\n1e21,20B,2000\n"),
              AllOf(HasSubstr("params 1e+21 is out of range"), HasSubstr("loss 2000 is out of range")));
  EXPECT_THAT(refused("params,flops,loss\n1e20,1e6,2\n"), HasSubstr("make 1.66667e-15 tokens"));
  EXPECT_THAT(refused("{\"params\": 1}\nnonsense\n{\"params\": \"x\", \"tokens\": -1, \"loss\": null}\n[]\n"),
              AllOf(HasSubstr("f:1: lacks a key"), HasSubstr("f:2: is not valid JSON"), HasSubstr("f:3: params"),
                    HasSubstr("f:3: tokens"), HasSubstr("f:3: loss"), HasSubstr("f:4: is not an object")));
  EXPECT_THAT(refused("[1, {\"params\": 1e9, \"tokens\": 1e9, \"loss\": 0}]"),
              AllOf(HasSubstr("f[0]: is not an object"), HasSubstr("f[1]: loss")));
  std::string many = "params,tokens,loss\n";
  for (int i = 0; i < 1000; ++i) many += "x,y,z\n";
  EXPECT_THAT(refused(many), HasSubstr("2980 more problems"));
  many = "params,tokens,loss\n";
  for (size_t i = 0; i <= kMaxRuns; ++i) many += "1B,20B,3\n";
  EXPECT_THAT(refused(many), HasSubstr("more than 100000 runs"));
}

TEST(ScalingRuns, MutatedFiles) {
  const std::string seeds[] = {"params,tokens,loss\n7B,140B,2.1\n1e9,2e10,2.5\n",
                               "{\"params\": 7e9, \"tokens\": 1.4e11, \"loss\": 2.1}\n", "[{\"params\": 7e9}]"};
  const CounterRng rng(1, Stream::kTest);
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string text = seeds[i % 3];
    for (uint64_t j = 0; j < 3; ++j)
      text[rng.below(16 * i + 2 * j, text.size())] = static_cast<char>(rng.below(16 * i + 2 * j + 1, 256));
    EXPECT_TRUE(loads_or_refuses([&] { parse_runs(text, "f"); }));
  }
}

}  // namespace
}  // namespace transept
