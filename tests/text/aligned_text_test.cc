#include "text/aligned_text.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "text/random_text.h"
#include "text/unicode.h"

namespace transept {
namespace {

using Range = std::pair<size_t, size_t>;

TEST(AlignedText, AnUntouchedTextIsItsSource) {
  const std::string source = "a\u00E9b";
  const AlignedText text(source, 10);
  EXPECT_EQ(text.offset(), 10u);
  EXPECT_EQ(text.source(0, 4), Range(10, 14));
  EXPECT_EQ(text.source(1, 2), Range(11, 13));  // half of a character is all of it
  EXPECT_EQ(text.source(2, 4), Range(11, 14));
  EXPECT_EQ(text.source(3, 3), Range(13, 13));
  EXPECT_EQ(text.source(4, 4), Range(14, 14));
  EXPECT_EQ(text.part(1, 3).bytes(), "\u00E9");
  EXPECT_EQ(text.part(1, 3).offset(), 11u);
  EXPECT_EQ(text.part(2, 2).source(0, 0), Range(11, 11));
  EXPECT_EQ(text.bytes().data(), source.data());
}

TEST(AlignedText, ARewriterThatChangesNothingCopiesNothing) {
  const std::string source = "a\u00E9b";
  AlignedText text(source);
  Rewriter rewriter(text);
  rewriter.copy(1);
  rewriter.put(0xE9, 0);
  rewriter.replace_parallel("b");
  rewriter.finish(text);
  EXPECT_EQ(text.bytes().data(), source.data());
}

TEST(AlignedText, EveryKindOfChange) {
  const std::string source = "ABC\u00E9DEFG";
  AlignedText text(source, 5);
  Rewriter rewriter(text);
  rewriter.put('x', 1);         // before everything: nothing stands for it
  rewriter.put('a', 0);         // A
  rewriter.put(0x2581, 0);      // B, longer now
  rewriter.put('y', 1);         // aligned with B
  rewriter.skip(1);             // C
  rewriter.put('e', 0);         // e acute
  rewriter.put('d', -1);        // D, and E vanishes
  rewriter.insert("<>", 7, 9);  // for F and G
  rewriter.replace_parallel("f");
  rewriter.finish(text);
  EXPECT_EQ(text.bytes(), "xa\u2581yed<>fG");
  EXPECT_EQ(text.source(0, 1), Range(5, 5));
  EXPECT_EQ(text.source(1, 2), Range(5, 6));
  EXPECT_EQ(text.source(2, 5), Range(6, 7));
  EXPECT_EQ(text.source(3, 4), Range(6, 7));
  EXPECT_EQ(text.source(5, 6), Range(6, 7));
  EXPECT_EQ(text.source(6, 7), Range(8, 10));
  EXPECT_EQ(text.source(7, 8), Range(10, 11));
  EXPECT_EQ(text.source(8, 9), Range(12, 14));
  EXPECT_EQ(text.source(10, 11), Range(12, 13));
  EXPECT_EQ(text.source(11, 12), Range(13, 14));
  EXPECT_EQ(text.source(0, 12), Range(5, 14));
  EXPECT_EQ(text.offset(), 5u);
  EXPECT_EQ(text.part(10, 12).offset(), 12u);

  // A second rewriting goes on from the first.
  Rewriter again(text);
  again.skip(1);
  again.copy(1);
  again.put('_', 0);
  again.copy(1);
  again.skip(2);
  again.finish(text);
  EXPECT_EQ(text.bytes(), "a_y<>fG");
  EXPECT_EQ(text.source(0, 1), Range(5, 6));
  EXPECT_EQ(text.source(1, 2), Range(6, 7));
  EXPECT_EQ(text.source(2, 3), Range(6, 7));
  EXPECT_EQ(text.source(4, 5), Range(12, 14));
  EXPECT_EQ(text.source(5, 7), Range(12, 14));
}

TEST(AlignedText, ARangeNeverEndsBeforeItBegins) {
  AlignedText text("abcd");
  Rewriter rewriter(text);
  rewriter.insert("<", 3, 4);
  rewriter.finish(text);
  EXPECT_EQ(text.bytes(), "<abcd");
  EXPECT_EQ(text.source(0, 1), Range(3, 4));
  EXPECT_EQ(text.source(0, 2), Range(3, 3));
  EXPECT_EQ(text.source(0, 5), Range(3, 4));
}

TEST(AlignedText, ATextThatVanishesKeepsItsPlace) {
  AlignedText text("abc", 7);
  Rewriter rewriter(text);
  rewriter.skip(3);
  rewriter.finish(text);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(text.offset(), 7u);
  EXPECT_EQ(text.source(0, 0), Range(7, 7));
  Rewriter nothing(text);
  nothing.put('x', 1);
  nothing.finish(text);
  EXPECT_EQ(text.bytes(), "x");
  EXPECT_EQ(text.source(0, 1), Range(7, 7));
}

// Any rewriting, twice over and in parts, against a plain list of characters with their ranges.
TEST(AlignedText, RandomRewritingsKeepEveryAlignment) {
  struct Model {
    uint32_t point;
    Range source;
  };
  const CounterRng rng(5, Stream::kTest);
  uint64_t draw = 0;
  for (int round = 0; round < 500; ++round) {
    const std::string source = random_utf8(rng, draw, 1 + rng.below(draw, 30));
    const size_t offset = rng.below(draw++, 3);
    std::vector<Model> model;
    for (size_t at = 0; at < source.size();) {
      const Character c = character_at(source, at);
      model.push_back({c.point, {offset + at, offset + at + c.length}});
      at += c.length;
    }
    AlignedText text(source, offset);
    for (int pass = 0; pass < 3; ++pass) {
      std::vector<Model> next;
      Rewriter rewriter(text);
      for (size_t i = 0; i < model.size();) {
        const size_t length = Utf8Character(model[i].point).view().size();
        switch (rng.below(draw++, 6)) {
          case 0:
            rewriter.skip(length);
            ++i;
            break;
          case 1: {
            const auto point = static_cast<uint32_t>(rng.below(draw++, 0x300));
            const int change = -static_cast<int>(rng.below(draw++, 2));
            rewriter.put(point, change);
            next.push_back({point, model[i].source});
            i += static_cast<size_t>(1 - change);
            break;
          }
          case 2:
            if (i > 0) {
              rewriter.put('+', 1);
              next.push_back({'+', model[i - 1].source});
            }
            [[fallthrough]];
          default:
            rewriter.copy(length);
            next.push_back(model[i++]);
        }
      }
      rewriter.finish(text);
      model = std::move(next);
      std::string expected;
      for (const Model& c : model) expected += Utf8Character(c.point).view();
      ASSERT_EQ(text.bytes(), expected);
      size_t at = 0;
      for (const Model& c : model) {
        const size_t length = Utf8Character(c.point).view().size();
        ASSERT_EQ(text.source(at, at + length), c.source);
        const AlignedText part = text.part(at, text.size());
        ASSERT_EQ(part.source(0, length), c.source);
        ASSERT_EQ(part.offset(), c.source.first);
        at += length;
      }
      if (model.empty()) break;
      if (rng.below(draw++, 2) == 0) {
        const size_t cut = Utf8Character(model[0].point).view().size();
        text = text.part(cut, text.size());
        model.erase(model.begin());
        if (model.empty()) break;
      }
    }
  }
}

}  // namespace
}  // namespace transept
