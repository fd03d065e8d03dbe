#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/random_text.h"

namespace transept {
namespace {

TEST(Utf8, EveryCodePointAndNothingElse) {
  for (uint32_t point = 0; point < 0x110000; ++point) {
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    const std::string text = utf8_of(point);
    ASSERT_EQ(is_utf8(text), !surrogate) << point;
    if (surrogate) continue;
    const Utf8Part part = utf8_part(text + "x");
    ASSERT_TRUE(part.valid && part.length == text.size());
    for (size_t n = 1; n < text.size(); ++n) {
      const Utf8Part cut = utf8_part(std::string_view(text).substr(0, n));
      ASSERT_TRUE(cut.cut && !cut.valid && cut.length == n) << point;
    }
  }
  EXPECT_FALSE(is_utf8(utf8_of(0x110000)));
  EXPECT_FALSE(is_utf8("\xC0\x80"));
  EXPECT_FALSE(is_utf8("\xE0\x80\x80"));
  EXPECT_FALSE(is_utf8("\xF0\x80\x80\x80"));
  EXPECT_FALSE(is_utf8("\x80"));
  EXPECT_FALSE(is_utf8("\xFF"));
}

// Unicode 15, table 3-8.
TEST(Utf8, RepairReplacesMaximalParts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(repair_utf8("a\xF1\x80\x80\xE1\x80\xC2"
                        "b\x80"
                        "c\x80\xBF"
                        "d"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(repair_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                        "A"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(repair_utf8(""), "");
}

TEST(Utf8, RepairedTextIsValidAndValidTextIsKept) {
  const CounterRng rng(1, Stream::kTest);
  uint64_t draw = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = random_bytes(rng, draw, rng.below(draw, 40)), valid = random_utf8(rng, draw, 20);
    ASSERT_TRUE(is_utf8(repair_utf8(bytes)));
    ASSERT_TRUE(is_utf8(valid));
    ASSERT_EQ(repair_utf8(valid), valid);
  }
}

}  // namespace
}  // namespace transept
