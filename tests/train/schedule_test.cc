// Learning-rate schedules, against closed forms (B36 among them).
#include "train/schedule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "support/goldens.h"
#include "support/tolerances.h"

namespace transept {
namespace {

TEST(Schedule, CosineRatesOfEachStep) {
  const Json golden = read_json(goldens() / "bugs/cases.json").at("schedule");
  const Schedule s{ScheduleKind::kCosine,   golden.at("peak"), golden.at("floor"), golden.at("warmup_steps"), 0,
                   golden.at("total_steps")};
  for (int64_t step = 1; step <= 12; ++step) {
    EXPECT_NEAR(s.rate(step), golden.at("rates_of_steps_1_to_12").at(static_cast<size_t>(step - 1)).get<double>(),
                tolerance::kDouble)
        << step;
  }
  EXPECT_GT(s.rate(1), 0);
  EXPECT_EQ(s.rate(4), 1);
  EXPECT_EQ(s.rate(12), 0);
}

TEST(Schedule, LinearConstantAndWsd) {
  const Schedule linear{ScheduleKind::kLinear, 1.0, 0.2, 2, 0, 10};
  EXPECT_DOUBLE_EQ(linear.rate(1), 0.5);
  EXPECT_DOUBLE_EQ(linear.rate(2), 1.0);
  EXPECT_DOUBLE_EQ(linear.rate(6), 0.6);
  EXPECT_DOUBLE_EQ(linear.rate(10), 0.2);
  const Schedule constant{ScheduleKind::kConstant, 1.0, 0.2, 2, 0, 10};
  EXPECT_DOUBLE_EQ(constant.rate(1), 0.5);
  EXPECT_DOUBLE_EQ(constant.rate(10), 1.0);
  const Schedule wsd{ScheduleKind::kWsd, 1.0, 0.0, 2, 4, 10};
  EXPECT_DOUBLE_EQ(wsd.rate(2), 1.0);
  EXPECT_DOUBLE_EQ(wsd.rate(6), 1.0);
  EXPECT_DOUBLE_EQ(wsd.rate(7), 0.75);
  EXPECT_DOUBLE_EQ(wsd.rate(10), 0.0);
}

TEST(Schedule, EdgesStayInRange) {
  for (const auto kind : {ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine, ScheduleKind::kWsd}) {
    for (const int64_t warmup : {0, 1, 5, 50}) {
      for (const int64_t total : {1, 2, 5}) {
        const Schedule s{kind, 1.0, 0.1, warmup, 3, total};
        for (int64_t step = 1; step <= total; ++step) {
          EXPECT_GT(s.rate(step), 0) << static_cast<int>(kind) << " " << warmup << " " << step << "/" << total;
          EXPECT_LE(s.rate(step), 1.0);
        }
      }
    }
    EXPECT_EQ(schedule_from_name(schedule_name(kind)), kind);
  }
  EXPECT_EQ(schedule_from_name("triangular"), std::nullopt);
}

}  // namespace
}  // namespace transept
