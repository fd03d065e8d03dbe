#include "base/format_number.h"

#include <gtest/gtest.h>

#include <cmath>

namespace transept {
namespace {

TEST(FormatNumber, Numbers) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(3), "3");
  EXPECT_EQ(format_number(2.34567), "2.346");
  EXPECT_EQ(format_number(-12.3456), "-12.35");
  EXPECT_EQ(format_number(12345.6), "12,346");
  EXPECT_EQ(format_number(-1234567), "-1,234,567");
  EXPECT_EQ(format_number(3e-4), "3e-4");
  EXPECT_EQ(format_number(1.25e20), "1.25e20");
  EXPECT_EQ(format_number(NAN), "–");
  EXPECT_EQ(format_number(-INFINITY), "−∞");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(10621824), "10,621,824");
  EXPECT_EQ(format_count(NAN), "–");
  EXPECT_EQ(exact_number(0.1), "0.1");
  EXPECT_EQ(exact_number(NAN), "");
}

TEST(FormatNumber, Units) {
  EXPECT_EQ(format_si(231e9, "FLOP/s"), "231 GFLOP/s");
  EXPECT_EQ(format_si(12.34, ""), "12.3");
  EXPECT_EQ(format_si(7, ""), "7");
  EXPECT_EQ(format_si(10621824, ""), "10.6 M");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1.5 * 1024 * 1024 * 1024), "1.50 GiB");
  EXPECT_EQ(format_bytes(42487296), "40.5 MiB");
  EXPECT_EQ(format_percent(0.0289), "+2.89 %");
  EXPECT_EQ(format_percent(-0.5), "-50.00 %");
  EXPECT_EQ(format_percent(0), "0 %");
}

}  // namespace
}  // namespace transept
