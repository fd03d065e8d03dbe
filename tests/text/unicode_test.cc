#include "text/unicode.h"

#include <gtest/gtest.h>

#include "text/byte_level.h"
#include "text/grapheme.h"
#include "text/random_text.h"
#include "text/utf8.h"

namespace transept {
namespace {

template <class Function>
void each_code_point(const Function& function) {
  for (uint32_t point = 0; point < 0x110000; ++point) {
    if (point < 0xD800 || point >= 0xE000) function(point);
  }
}

size_t count(uint32_t trait) {
  size_t found = 0;
  each_code_point([&](uint32_t point) { found += (traits(point) & trait) != 0; });
  return found;
}

TEST(Unicode, ReadsAndWritesEveryCodePoint) {
  each_code_point([](uint32_t point) {
    const std::string text = utf8_of(point);
    ASSERT_EQ(Utf8Character(point).view(), text);
    ASSERT_EQ(read_character(text.data()).point, point);
    ASSERT_EQ(read_character(text.data()).length, text.size());
    ASSERT_EQ(character_before("a" + text, 1 + text.size()), 1u);
  });
}

// The sizes of the sets as Hugging Face tokenizers 0.23.3 have them, counted over all code points.
TEST(Unicode, SetsHaveTheSizesOfTheirVersions) {
  EXPECT_EQ(count(kLetter), 141028u);
  EXPECT_EQ(count(kNumber), 1911u);
  EXPECT_EQ(count(kMark), 2501u);
  EXPECT_EQ(count(kPunctuation), 855u);
  EXPECT_EQ(count(kSymbol), 8514u);
  EXPECT_EQ(count(kSpace), 25u);
  EXPECT_EQ(count(kWord), 144667u);
  EXPECT_EQ(count(kUpperLike), 1858u + 31 + 404 + 136477 + 2501);
  EXPECT_EQ(count(kLowerLike), 2258u + 404 + 136477 + 2501);
  EXPECT_EQ(count(kNewline), 2u);
  EXPECT_EQ(count(kNumeric), 1924u);
  EXPECT_EQ(count(kBertPunctuation), 726u);
  EXPECT_EQ(count(kNonspacing), 1567u);
  EXPECT_EQ(count(kControl), 137681u - 1);  // they count U+FFFD, which clean_text removes too
  EXPECT_EQ(count(kAccent), 2097u);
}

TEST(Unicode, AsciiTraitsAreThoseOfItsCharacters) {
  for (uint32_t c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    EXPECT_EQ((traits(c) & kLetter) != 0, letter) << c;
    EXPECT_EQ((traits(c) & kNumber) != 0, digit) << c;
    EXPECT_EQ((traits(c) & kWord) != 0, letter || digit || c == '_') << c;
    EXPECT_EQ((traits(c) & kSpace) != 0, c == ' ' || (c >= 9 && c <= 13)) << c;
    EXPECT_EQ((traits(c) & kBertPunctuation) != 0, c > 32 && c < 127 && !letter && !digit) << c;
    EXPECT_EQ((traits(c) & (kPunctuation | kSymbol)) != 0, c > 32 && c < 127 && !letter && !digit) << c;
  }
}

TEST(Unicode, LowerCase) {
  size_t changed = 0;
  each_code_point([&](uint32_t point) {
    const uint32_t lower = lower_case(point);
    changed += lower != point;
    ASSERT_EQ(lower_case(lower), lower) << point;
  });
  EXPECT_EQ(changed, 1488u - 1);  // all but U+0130
  EXPECT_EQ(lower_case('Q'), uint32_t{'q'});
  EXPECT_EQ(lower_case(0x3A3), 0x3C3u);      // sigma, never final
  EXPECT_EQ(lower_case(0x1E9E), 0xDFu);      // sharp s
  EXPECT_EQ(lower_case(0x2126), 0x3C9u);     // ohm
  EXPECT_EQ(lower_case(0x10D50), 0x10D70u);  // Garay, Unicode 16
  EXPECT_EQ(lower_case(0x16EA0), 0x16EBBu);  // Beria Erfe, Unicode 17
}

TEST(Unicode, Graphemes) {
  const auto lengths = [](std::string_view text) {
    std::vector<size_t> out;
    for (size_t at = 0; at < text.size(); at = grapheme_end(text, at)) out.push_back(grapheme_end(text, at) - at);
    return out;
  };
  using Lengths = std::vector<size_t>;
  EXPECT_EQ(lengths("ab"), (Lengths{1, 1}));
  EXPECT_EQ(lengths("\r\n\n\r"), (Lengths{2, 1, 1}));
  EXPECT_EQ(lengths("e\u0301\u0302x"), (Lengths{5, 1}));
  EXPECT_EQ(lengths("\n\u0301"), (Lengths{1, 2}));
  EXPECT_EQ(lengths("\u1100\u1161\u11A8\u1100"), (Lengths{9, 3}));
  EXPECT_EQ(lengths("\uAC00\u11A8\uAC01\u1161"), (Lengths{6, 3, 3}));
  EXPECT_EQ(lengths("\U0001F469\u200D\U0001F4BBx"), (Lengths{11, 1}));
  EXPECT_EQ(lengths("a\u200D\U0001F4BB"), (Lengths{4, 4}));
  EXPECT_EQ(lengths("\u00A9\uFE0F\u200D\U0001F4BB"), (Lengths{12}));
  EXPECT_EQ(lengths("\U0001F1E9\U0001F1EA\U0001F1EB"), (Lengths{8, 4}));
  EXPECT_EQ(lengths("\u0915\u093F"), (Lengths{6}));
  EXPECT_EQ(lengths("\u0600a"), (Lengths{3}));
}

TEST(Unicode, ByteLevelCharactersAreThoseOfGpt2) {
  size_t moved = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t point = byte_level_code_point(static_cast<uint8_t>(byte));
    EXPECT_EQ(byte_level_byte(point), static_cast<uint8_t>(byte));
    if (point != byte) {
      EXPECT_EQ(point, 0x100 + moved);
      ++moved;
    }
  }
  EXPECT_EQ(moved, 68u);
  EXPECT_EQ(byte_level_code_point(' '), 0x120u);
  EXPECT_EQ(byte_level_code_point('\n'), 0x10Au);
  EXPECT_FALSE(byte_level_byte(' '));
  EXPECT_FALSE(byte_level_byte(0x144));
  EXPECT_FALSE(byte_level_byte(0x10FFFF));
  EXPECT_EQ(to_byte_level(" \xC3\xA9!"), "\u0120\u00C3\u00A9!");
  EXPECT_EQ(from_byte_level("\u0120\u00C3\u00A9!"), " \xC3\xA9!");
  EXPECT_FALSE(from_byte_level("a b"));
  const CounterRng rng(3, Stream::kTest);
  uint64_t draw = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = random_bytes(rng, draw, rng.below(draw, 40));
    ASSERT_TRUE(is_utf8(to_byte_level(bytes)));
    ASSERT_EQ(from_byte_level(to_byte_level(bytes)), bytes);
  }
}

}  // namespace
}  // namespace transept
