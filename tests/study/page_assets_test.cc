// The page's colours reach WCAG 2.2 AA in both schemes.
#include "study/page_assets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace transept {
namespace {

const PageColor& color(std::string_view name) {
  return *std::find_if(kPageColors.begin(), kPageColors.end(), [&](const PageColor& c) { return c.name == name; });
}

TEST(Contrast, KnownRatios) {
  EXPECT_NEAR(contrast_ratio(0x000000, 0xffffff), 21, 1e-9);
  EXPECT_NEAR(contrast_ratio(0x777777, 0xffffff), 4.478, 1e-3);  // the well-known grey just below AA
  EXPECT_LT(contrast_ratio(0x777777, 0xffffff), 4.5);
  EXPECT_EQ(contrast_ratio(0x123456, 0x123456), 1);
}

TEST(Contrast, TextReachesAa) {
  for (const char* ground : {"paper", "surface"}) {
    for (const char* text : {"text", "muted", "accent"}) {
      EXPECT_GE(contrast_ratio(color(text).light, color(ground).light), 4.5) << text << " on " << ground;
      EXPECT_GE(contrast_ratio(color(text).dark, color(ground).dark), 4.5) << text << " on " << ground;
    }
  }
}

TEST(Contrast, GraphicsReachAa) {
  const PageColor& paper = color("paper");
  EXPECT_GE(contrast_ratio(color("edge").light, paper.light), 3);
  EXPECT_GE(contrast_ratio(color("edge").dark, paper.dark), 3);
  std::set<uint32_t> light, dark;
  for (const PageColor& c : kSeriesColors) {
    EXPECT_GE(contrast_ratio(c.light, paper.light), 3) << c.name;
    EXPECT_GE(contrast_ratio(c.dark, paper.dark), 3) << c.name;
    light.insert(c.light);
    dark.insert(c.dark);
  }
  EXPECT_EQ(light.size(), kSeriesColors.size());
  EXPECT_EQ(dark.size(), kSeriesColors.size());
}

TEST(PageStyle, HasBothSchemesAndPrint) {
  const std::string style = page_style();
  EXPECT_NE(style.find("--paper:#ffffff;"), std::string::npos);
  EXPECT_NE(style.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(style.find("@media print"), std::string::npos);
  EXPECT_EQ(std::count(style.begin(), style.end(), '{'), std::count(style.begin(), style.end(), '}'));
}

// The script stands inside a <script> element.
TEST(PageScript, CannotEndItsElement) { EXPECT_EQ(page_script().find("</"), std::string_view::npos); }

}  // namespace
}  // namespace transept
