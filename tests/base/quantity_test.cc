#include "base/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace transept {
namespace {

TEST(Quantity, AsTheFieldWritesThem) {
  const std::pair<const char*, double> good[] = {{"7e9", 7e9},         {"7B", 7e9},   {"1.4T", 1.4e12}, {"350m", 350e6},
                                                 {"5.76e23", 5.76e23}, {"12k", 12e3}, {"1", 1},         {"0.5b", 5e8}};
  for (const auto& [text, value] : good) EXPECT_EQ(parse_quantity(text), value) << text;
  for (const char* text : {"", "B", "0", "0B", "-7B", "7 B", "7BB", "7Q", "inf", "nan", "infT", "1e400", "1e308T",
                           "0x10", "1,000", " 7", "7e", "seven"})
    EXPECT_FALSE(parse_quantity(text)) << text;
}

TEST(Quantity, Text) {
  const std::pair<double, const char*> cases[] = {
      {7e9, "7.00B"}, {70e9, "70.0B"},   {350e6, "350M"},    {1.4e12, "1.40T"}, {999.6e9, "1.00T"},
      {12, "12.0"},   {999.94, "1.00K"}, {0.25, "0.25"},     {1e-5, "1e-05"},   {5.76e23, "5.76e+23"},
      {NAN, "–"},     {INFINITY, "–"},   {9.9999e9, "10.0B"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(quantity_text(value), text);
}

TEST(Quantity, Bytes) {
  const std::pair<const char*, double> good[] = {{"24GiB", 24 * 0x1p30}, {"80GB", 8e10},           {"5kB", 5e3},
                                                 {"5KB", 5e3},           {"1.5TiB", 1.5 * 0x1p40}, {"512", 512},
                                                 {"1MiB", 0x1p20}};
  for (const auto& [text, value] : good) EXPECT_EQ(parse_bytes(text), value) << text;
  for (const char* text : {"", "GiB", "0GB", "-1GB", "1 GB", "1gb", "1G", "7B", "nanGB", "1e999GB"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

}  // namespace
}  // namespace transept
