// Counts that the Hub shows, explained to the unit.
#include "plan/published.h"

#include <gtest/gtest.h>

#include "base/problem.h"
#include "spec/presets.h"

namespace transept {
namespace {

TEST(Published, DifferencesOfTheHub) {
  const struct {
    const char* name;
    int64_t hub;
    size_t parts;
  } known[] = {{"llama-2-7b", 6738417664, 1},    {"llama-2-13b", 13015866880, 1},  {"llama-2-70b", 68976653312, 1},
               {"qwen3-0.6b", 751632384, 1},     {"qwen3-1.7b", 2031739904, 1},    {"gpt2", 137022720, 1},
               {"deepseek-v3", 684489845504, 2}, {"deepseek-v3", 684531386000, 4}, {"llama-3-8b", 8030261248, 0}};
  for (const auto& k : known) {
    const PublishedCount p = explain_count(preset(k.name), k.hub);
    EXPECT_TRUE(p.explained) << k.name << " " << k.hub;
    EXPECT_EQ(p.parts.size(), k.parts) << k.name << " " << k.hub;
    int64_t sum = p.counted;
    for (const CountDifference& d : p.parts) sum += d.elements;
    EXPECT_EQ(sum, k.hub);
  }
}

// DeepSeek-V3's further layer alone, and its copies of both tables (the figures of its model card's notes).
TEST(Published, TheFurtherLayer) {
  const PublishedCount p = explain_count(preset("deepseek-v3"), 684489845504);
  ASSERT_EQ(p.parts.size(), 2u);
  EXPECT_EQ(p.parts[0].elements, 11610068224);
  EXPECT_EQ(p.parts[1].elements, 1853358080);
}

TEST(Published, SaysWhenNothingFits) {
  const PublishedCount p = explain_count(preset("gpt2"), 124439809);
  EXPECT_FALSE(p.explained);
  EXPECT_TRUE(p.parts.empty());
  EXPECT_THROW(explain_count(preset("gpt2"), 0), InputError);
}

}  // namespace
}  // namespace transept
