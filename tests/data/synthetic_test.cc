#include "data/synthetic.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace transept {
namespace {

TEST(SyntheticText, SizeSeedAndPrefix) {
  for (const uint64_t n : {0, 1, 100, 99'999}) EXPECT_EQ(synthetic_text(n, 1).size(), n);
  const std::string text = synthetic_text(20'000, 1);
  EXPECT_EQ(text, synthetic_text(20'000, 1));
  EXPECT_EQ(text.substr(0, 5'000), synthetic_text(5'000, 1));
  EXPECT_NE(text, synthetic_text(20'000, 2));
}

TEST(SyntheticText, LooksLikeAPlay) {
  std::istringstream lines(synthetic_text(200'000, 7));
  std::map<std::string, int> speakers, sentences;
  std::string before_last;
  for (std::string line; std::getline(lines, line);) {
    for (const char c : line) ASSERT_TRUE(c >= ' ' && c < 0x7F);
    ASSERT_EQ(line.find('%'), std::string::npos);
    ASSERT_EQ(line.find("  "), std::string::npos);
    if (line.starts_with("SCENE")) before_last.clear();
    if (line.ends_with(':')) {
      ASSERT_NE(line, before_last) << "somebody answers himself";
      before_last = line;
      ++speakers[line];
    } else if (!line.empty() && line[0] != '[' && !line.starts_with("SCENE")) {
      ASSERT_TRUE(line[0] >= 'A' && line[0] <= 'Z') << line;
      ++sentences[line];
    }
  }
  EXPECT_EQ(speakers.size(), 12u);
  EXPECT_GT(sentences.size(), 2000u);  // it does not repeat itself
}

}  // namespace
}  // namespace transept
