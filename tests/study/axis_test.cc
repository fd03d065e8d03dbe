#include "study/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace transept {
namespace {

std::vector<std::string> labels(double low, double high, int wanted, bool log = false) {
  std::vector<std::string> out;
  for (const Tick& t : make_ticks(low, high, wanted, log)) out.push_back(t.label);
  return out;
}

using ::testing::ElementsAre;

TEST(Ticks, RoundNumbers) {
  EXPECT_THAT(labels(0, 10, 5), ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(labels(-1, 1, 4), ElementsAre("-1.0", "-0.5", "0", "0.5", "1.0"));
  EXPECT_THAT(labels(0, 2e6, 4), ElementsAre("0", "0.5M", "1.0M", "1.5M", "2.0M"));
  EXPECT_THAT(labels(0, 3e-4, 3), ElementsAre("0", "1e-4", "2e-4", "3e-4"));
  EXPECT_THAT(labels(0, 20000, 4), ElementsAre("0", "5k", "10k", "15k", "20k"));
  EXPECT_THAT(labels(1.03, 1.97, 4), ElementsAre("1.2", "1.4", "1.6", "1.8"));
}

TEST(Ticks, Logarithmic) {
  EXPECT_THAT(labels(1, 1000, 4, true), ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(labels(1e5, 1e8, 4, true), ElementsAre("100k", "1M", "10M", "100M"));
  EXPECT_THAT(labels(1, 20, 8, true), ElementsAre("1", "2", "5", "10", "20"));
  EXPECT_THAT(labels(1e-6, 1, 3, true), ElementsAre("1e-6", "1e-4", "0.01", "1"));
}

// Whatever the interval: ticks ascend, lie inside, are few, and their labels differ.
TEST(Ticks, PropertiesOverManyIntervals) {
  for (int e = -280; e <= 280; e += 7) {
    for (const double lead : {-3.7, -1.0, 0.0, 0.33, 1.0, 9.99}) {
      for (const double span : {1e-6, 0.013, 1.0, 7.3, 1000.0}) {
        for (const int wanted : {1, 2, 5, 10}) {
          const double unit = std::pow(10, e), low = lead * unit, high = low + span * unit;
          const auto ticks = make_ticks(low, high, wanted, false);
          ASSERT_LE(ticks.size(), 3u * static_cast<size_t>(wanted)) << low << " " << high;
          for (size_t i = 0; i < ticks.size(); ++i) {
            ASSERT_GE(ticks[i].value, low - 1e-6 * span * unit);
            ASSERT_LE(ticks[i].value, high + 1e-6 * span * unit);
            if (i == 0) continue;
            ASSERT_GT(ticks[i].value, ticks[i - 1].value);
            if (span >= 0.01) {
              ASSERT_NE(ticks[i].label, ticks[i - 1].label) << low << " " << high;
            }
          }
        }
      }
    }
  }
}

TEST(Cover, SkipsWhatCannotBeDrawnAndIsNeverEmpty) {
  const double nan = NAN, inf = std::numeric_limits<double>::infinity();
  const auto check = [](const std::vector<double>& v, bool log, double low, double high) {
    const Interval i = cover(v, log);
    EXPECT_DOUBLE_EQ(i.low, low);
    EXPECT_DOUBLE_EQ(i.high, high);
  };
  check({3, nan, 1, inf, -inf, 2}, false, 1, 3);
  check({}, false, 0, 1);
  check({nan}, true, 1, 10);
  check({5}, false, 4.5, 5.5);
  check({0, 0}, false, -1, 1);
  check({-1, 0, 4, 16}, true, 4, 16);
  check({4}, true, 2, 8);
}

TEST(Scale, MapsEndsOntoEnds) {
  const Scale linear({2, 4}, 100, 0, false), log({1, 100}, 0, 50, true);
  EXPECT_DOUBLE_EQ(linear(2), 100);
  EXPECT_DOUBLE_EQ(linear(3), 50);
  EXPECT_DOUBLE_EQ(linear(4), 0);
  EXPECT_DOUBLE_EQ(log(10), 25);
}

}  // namespace
}  // namespace transept
