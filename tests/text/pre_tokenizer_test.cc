#include "text/pre_tokenizer.h"

#include "text/byte_level.h"
#include "text/random_text.h"
#include "text/rewriting_goldens.h"
#include "text/utf8.h"

namespace transept {
namespace {

using Words = std::vector<std::string>;

Words words(const PreTokenizer& pre_tokenizer, const AlignedText& text) {
  Words out;
  for (const AlignedText& part : split_text(pre_tokenizer, text)) out.emplace_back(part.bytes());
  return out;
}

TEST(PreTokenizer, AgreesWithTokenizers) { EXPECT_EQ(check_goldens(true), 50u); }

TEST(PreTokenizer, IsolatedPartsJoinToTheText) {
  const Json goldens = rewriting_goldens();
  const CounterRng rng(21, Stream::kTest);
  uint64_t draw = 0;
  for (const char* name : {"Tekken", "DeepSeek3Alone", "SplitStringIsolatedFalse", "SplitRegexIsolated", "WordRegex",
                           "PunctuationIsolated", "Digits", "DigitsSingle", "SplitStringContiguousTrue"}) {
    const auto pre_tokenizer = pre_tokenizer_of(golden_block(goldens, name, "pre_tokenizer"));
    for (int i = 0; i < 1000; ++i) {
      const std::string source = random_utf8(rng, draw, 30);
      std::string joined;
      size_t at = 9;
      for (const AlignedText& part : split_text(*pre_tokenizer, AlignedText(source, 9))) {
        const auto [begin, end] = part.source(0, part.size());
        ASSERT_EQ(begin, at) << name;
        ASSERT_EQ(part.offset(), at);
        at = end;
        joined += part.bytes();
        ASSERT_FALSE(part.empty());
      }
      ASSERT_EQ(joined, source) << name;
    }
  }
}

// The two forms of ByteLevel differ by nothing but the spelling of bytes.
TEST(PreTokenizer, RawBytesAreTheCharactersOfByteLevel) {
  const Json goldens = rewriting_goldens();
  const CounterRng rng(22, Stream::kTest);
  uint64_t draw = 0;
  for (const char* name : {"ByteLevelGpt2", "ByteLevelPrefix", "Llama3", "Qwen2", "O200k", "DeepSeek3", "Bloom"}) {
    const Json block = golden_block(goldens, name, "pre_tokenizer");
    const auto characters = pre_tokenizer_of(block), raw = pre_tokenizer_of(block, ByteLevelText::kRawBytes);
    EXPECT_FALSE(characters->raw_bytes());
    EXPECT_TRUE(raw->raw_bytes());
    for (int i = 0; i < 500; ++i) {
      const std::string source = random_utf8(rng, draw, 20);
      auto expected = parts_of(split_text(*raw, AlignedText(source)));
      for (RewrittenPart& part : expected) part.text = to_byte_level(part.text);
      ASSERT_EQ(parts_of(split_text(*characters, AlignedText(source))), expected) << name;
    }
  }
  // Where something follows ByteLevel it must see the characters.
  const auto falcon = pre_tokenizer_of(golden_block(goldens, "Falcon", "pre_tokenizer"), ByteLevelText::kRawBytes);
  EXPECT_FALSE(falcon->raw_bytes());
  EXPECT_EQ(words(*falcon, AlignedText("a b")), (Words{"a",
                                                       "\u0120"
                                                       "b"}));
}

// B22 of the collected bugs: where the space mark is put.
TEST(PreTokenizer, MetaspaceMarksWhereItsSchemeSays) {
  const auto metaspace = [](const std::string& settings) {
    return pre_tokenizer_of(Json::parse(R"({"type":"Metaspace","replacement":"\u2581")" + settings + "}"));
  };
  const std::string mark = "\u2581";
  const auto split = [&](const std::string& settings) {
    const auto pre_tokenizer = metaspace(settings);
    std::vector<AlignedText> parts{AlignedText("a b", 0), AlignedText("c", 6)};  // "a b<s>c"
    pre_tokenizer->apply(parts);
    Words out;
    for (const AlignedText& part : parts) out.emplace_back(part.bytes());
    return out;
  };
  EXPECT_EQ(split(R"(,"prepend_scheme":"always")"), (Words{mark + "a", mark + "b", mark + "c"}));
  EXPECT_EQ(split(R"(,"prepend_scheme":"first")"), (Words{mark + "a", mark + "b", "c"}));
  EXPECT_EQ(split(R"(,"prepend_scheme":"never")"), (Words{"a", mark + "b", "c"}));
  EXPECT_EQ(split(R"(,"add_prefix_space":true)"), (Words{mark + "a", mark + "b", mark + "c"}));
  EXPECT_EQ(split(R"(,"add_prefix_space":false)"), (Words{"a", mark + "b", "c"}));
  EXPECT_EQ(split(R"(,"prepend_scheme":"always","split":false)"), (Words{mark + "a" + mark + "b", mark + "c"}));
}

TEST(PreTokenizer, EmptyPartsVanish) {
  const Json goldens = rewriting_goldens();
  for (const Json& one : goldens["cases"]) {
    if (one["pre_tokenizer"].is_null()) continue;
    std::vector<AlignedText> parts{AlignedText(""), AlignedText("x", 0), AlignedText("", 1)};
    pre_tokenizer_of(one["pre_tokenizer"])->apply(parts);
    EXPECT_LE(parts.size(), 1u) << one["name"];
  }
}

std::vector<std::string> problems_of(const char* block) {
  Problems problems;
  EXPECT_EQ(read_pre_tokenizer(Json::parse(block), "pre_tokenizer", problems), nullptr) << block;
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(problem.where + ": " + problem.what);
  return out;
}

TEST(PreTokenizer, ProblemsNameTheirPath) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(problems_of(R"("Whitespace")"), Lines{"pre_tokenizer: is no JSON object"});
  EXPECT_EQ(problems_of(R"({"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"UnicodeScripts"}]})"),
            Lines{"pre_tokenizer.pretokenizers[1].type: is UnicodeScripts, no pre-tokenizer that is supported"});
  EXPECT_EQ(problems_of(R"({"type":"Sequence"})"), Lines{"pre_tokenizer.pretokenizers: is no list"});
  EXPECT_EQ(problems_of(R"({"type":"Split","pattern":{"Regex":"[a&&b]"},"behavior":"Isolated","invert":false})"),
            Lines{"pre_tokenizer.pattern.Regex: holds the intersection && of classes, which is not supported"});
  EXPECT_EQ(
      problems_of(R"({"type":"Split","pattern":{"String":"a"},"behavior":"Cut","invert":0})"),
      (Lines{"pre_tokenizer.behavior: is none of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous",
             "pre_tokenizer.invert: is neither true nor false"}));
  EXPECT_EQ(problems_of(R"({"type":"Metaspace","replacement":"ab","prepend_scheme":"last"})"),
            (Lines{"pre_tokenizer.replacement: is no single character",
                   "pre_tokenizer.prepend_scheme: is none of always, first, never"}));
  EXPECT_EQ(problems_of(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first","add_prefix_space":false})"),
            Lines{"pre_tokenizer.add_prefix_space: contradicts prepend_scheme"});
  EXPECT_EQ(problems_of(R"({"type":"ByteLevel","use_regex":true})"),
            Lines{"pre_tokenizer.add_prefix_space: is missing"});
  EXPECT_EQ(problems_of(R"({"type":"Digits","individual_digits":false,"most":3})"),
            Lines{"pre_tokenizer.most: is no setting of Digits"});
  std::string deep = R"({"type":"Whitespace"})";
  for (int i = 0; i < 12; ++i) deep = R"({"type":"Sequence","pretokenizers":[)" + deep + "]}";
  const auto lines = problems_of(deep.c_str());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].ends_with("nests sequences deeper than 8"));
}

TEST(PreTokenizer, AnyBlockIsReadOrRefused) {
  const CounterRng rng(23, Stream::kTest);
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return rng.below(draw++, n); };
  size_t read = 0;
  for (int i = 0; i < 20000; ++i) {
    Problems problems;
    const auto pre_tokenizer = read_pre_tokenizer(random_block(below, 0), "pre_tokenizer", problems);
    if (pre_tokenizer == nullptr) continue;
    ++read;
    EXPECT_TRUE(problems.empty());
    const std::string source = random_utf8(rng, draw, 12);
    for (const AlignedText& part : split_text(*pre_tokenizer, AlignedText(source))) {
      ASSERT_TRUE(is_utf8(part.bytes()));
      ASSERT_LE(part.source(0, part.size()).second, source.size());
    }
  }
  EXPECT_GT(read, 50u);
}

}  // namespace
}  // namespace transept
