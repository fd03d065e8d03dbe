#include "text/normalizer.h"

#include "text/base64.h"
#include "text/charsmap.h"
#include "text/normal_form.h"
#include "text/random_text.h"
#include "text/rewriting_goldens.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace transept {
namespace {

std::string normalized(const Normalizer& normalizer, const std::string& source) {
  AlignedText text(source);
  normalizer.apply(text);
  return std::string(text.bytes());
}

std::string normalized(const char* block, const std::string& source) {
  return normalized(*normalizer_of(Json::parse(block)), source);
}

std::string in_form(NormalForm form, const std::string& source) {
  AlignedText text(source);
  to_normal_form(text, form);
  return std::string(text.bytes());
}

TEST(Normalizer, AgreesWithTokenizers) { EXPECT_EQ(check_goldens(false), 21u); }

// B23 of the collected bugs: flags of BERT's normalizer.
TEST(Normalizer, BertObeysItsFlags) {
  const std::string text("Kant\u014D l\u01DCsh\u00EC \u4E2D\u6587 a\0b\u00A0c", 28);
  const auto bert = [&](const char* accents, bool lowercase) {
    const std::string block =
        std::string(R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)") +
        R"("strip_accents":)" + accents + R"(,"lowercase":)" + (lowercase ? "true}" : "false}");
    return normalized(block.c_str(), text);
  };
  EXPECT_EQ(bert("null", true), "kanto lushi  \u4E2D  \u6587  ab c");
  EXPECT_EQ(bert("false", true), "kant\u014D l\u01DCsh\u00EC  \u4E2D  \u6587  ab c");
  EXPECT_EQ(bert("null", false), "Kant\u014D l\u01DCsh\u00EC  \u4E2D  \u6587  ab c");
  EXPECT_EQ(bert("true", false), "Kanto lushi  \u4E2D  \u6587  ab c");
}

TEST(Normalizer, FormsOfSinglePoints) {
  EXPECT_EQ(in_form(NormalForm::kD, "\u00E9"), "e\u0301");
  EXPECT_EQ(in_form(NormalForm::kC, "e\u0301"), "\u00E9");
  EXPECT_EQ(in_form(NormalForm::kC, "\u212B"), "\u00C5");                // a singleton
  EXPECT_EQ(in_form(NormalForm::kC, "\u0958"), "\u0915\u093C");          // excluded from composition
  EXPECT_EQ(in_form(NormalForm::kD, "a\u0301\u0323"), "a\u0323\u0301");  // canonical order
  EXPECT_EQ(in_form(NormalForm::kC, "a\u0301\u0323"), "\u1EA1\u0301");   // over a mark of a lower class
  EXPECT_EQ(in_form(NormalForm::kC, "a\u0305\u0301"), "a\u0305\u0301");  // blocked by one of the same class
  EXPECT_EQ(in_form(NormalForm::kKC, "\uFB01\u2460\u3314"), "fi1\u30AD\u30ED");
  EXPECT_EQ(in_form(NormalForm::kKD, "\u1E9B\u0323"), "s\u0323\u0307");
  EXPECT_EQ(in_form(NormalForm::kC, "\u0F73"), "\u0F71\u0F72");  // class 0, decomposes to others
  EXPECT_EQ(in_form(NormalForm::kC, "\u3231\u32FF"), "\u3231\u32FF");
  EXPECT_EQ(in_form(NormalForm::kKC, "\u32FF"), "\u32FF");  // assigned after Unicode 9
}

// The Unicode Standard, section 3.12.
TEST(Normalizer, HangulIsArithmetic) {
  for (uint32_t lead = 0; lead < 19; ++lead) {
    for (uint32_t vowel = 0; vowel < 21; ++vowel) {
      for (uint32_t trail = 0; trail < 28; ++trail) {
        const std::string syllable = utf8_of(0xAC00 + (lead * 21 + vowel) * 28 + trail);
        const std::string jamo =
            utf8_of(0x1100 + lead) + utf8_of(0x1161 + vowel) + (trail == 0 ? "" : utf8_of(0x11A7 + trail));
        ASSERT_EQ(in_form(NormalForm::kD, syllable), jamo);
        ASSERT_EQ(in_form(NormalForm::kKC, jamo), syllable);
      }
    }
  }
  EXPECT_EQ(in_form(NormalForm::kC, "\uAC00\u11A7"), "\uAC00\u11A7");
}

// Text in which neighbours compose, reorder and decompose.
std::string marked_text(const CounterRng& rng, uint64_t& draw) {
  static const uint32_t kPoints[] = {'a',    'e',    'q',    0xE9,   0x1EA1, 0x301, 0x323,  0x307,   0x345,  0x344,
                                     0xF71,  0xF72,  0xF73,  0x915,  0x93C,  0x958, 0x1100, 0x1161,  0x11A8, 0xAC00,
                                     0xAC01, 0xFB01, 0x2460, 0x3099, 0x304B, 0x5BC, 0x5D1,  0x1D15E, ' '};
  std::string text;
  for (uint64_t i = rng.below(draw++, 24); i > 0; --i) {
    text +=
        rng.below(draw++, 8) == 0 ? random_utf8(rng, draw, 1) : utf8_of(kPoints[rng.below(draw++, std::size(kPoints))]);
  }
  return text;
}

// UAX 15, section 1.2.
TEST(Normalizer, FormsAreIdempotentAndFollowFromEachOther) {
  const CounterRng rng(11, Stream::kTest);
  uint64_t draw = 0;
  using enum NormalForm;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = marked_text(rng, draw);
    const std::string c = in_form(kC, text), d = in_form(kD, text), kc = in_form(kKC, text), kd = in_form(kKD, text);
    ASSERT_EQ(in_form(kC, c), c) << text;
    ASSERT_EQ(in_form(kD, d), d) << text;
    ASSERT_EQ(in_form(kKC, kc), kc) << text;
    ASSERT_EQ(in_form(kKD, kd), kd) << text;
    ASSERT_EQ(in_form(kC, d), c) << text;
    ASSERT_EQ(in_form(kD, c), d) << text;
    ASSERT_EQ(in_form(kKC, d), kc) << text;
    ASSERT_EQ(in_form(kD, kc), kd) << text;
    ASSERT_EQ(in_form(kC, kd), kc) << text;
  }
}

TEST(Normalizer, ALongRunOfMarksIsSortedInTime) {
  std::string marks = "a";
  for (int i = 0; i < 200000; ++i) marks += i % 2 ? "\u0301" : "\u0323";
  const std::string sorted = in_form(NormalForm::kD, marks);
  ASSERT_EQ(sorted.size(), marks.size());
  EXPECT_EQ(sorted.substr(0, 5), "a\u0323\u0323");
  EXPECT_EQ(sorted.substr(sorted.size() - 4), "\u0301\u0301");
}

// Whatever a normalizer does: the result is UTF-8, and what its characters stand for are characters of the source.
TEST(Normalizer, AlignmentsStayInsideTheSource) {
  const Json goldens = rewriting_goldens();
  const CounterRng rng(12, Stream::kTest);
  uint64_t draw = 0;
  for (const Json& one : goldens["cases"]) {
    if (one["normalizer"].is_null()) continue;
    const auto normalizer = normalizer_of(one["normalizer"]);
    for (int i = 0; i < 200; ++i) {
      const std::string source = marked_text(rng, draw) + random_utf8(rng, draw, 20);
      AlignedText text(source, 3);
      normalizer->apply(text);
      ASSERT_TRUE(is_utf8(text.bytes()));
      for (const auto& [part, begin, end] : characters_of(text)) {
        ASSERT_TRUE(3 <= begin && begin <= end && end <= 3 + source.size()) << one["name"];
        ASSERT_TRUE(is_utf8(std::string_view(source).substr(begin - 3, end - begin))) << one["name"];
      }
      ASSERT_EQ(text.offset(), 3u);
    }
  }
}

TEST(Normalizer, NullIsNothingToDo) {
  Problems problems;
  EXPECT_EQ(read_normalizer(Json(), "normalizer", problems), nullptr);
  EXPECT_EQ(precompiled_normalizer("", "charsmap", problems), nullptr);
  EXPECT_TRUE(problems.empty());
}

std::vector<std::string> problems_of(const char* block) {
  Problems problems;
  EXPECT_EQ(read_normalizer(Json::parse(block), "normalizer", problems), nullptr) << block;
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(problem.where + ": " + problem.what);
  return out;
}

TEST(Normalizer, ProblemsNameTheirPath) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(problems_of(R"([])"), Lines{"normalizer: is no JSON object"});
  EXPECT_EQ(problems_of(R"({})"), Lines{"normalizer.type: is missing, no normalizer that is supported"});
  EXPECT_EQ(problems_of(
                R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFX"},{"type":"Strip","strip_left":1}]})"),
            (Lines{"normalizer.normalizers[1].type: is NFX, no normalizer that is supported",
                   "normalizer.normalizers[2].strip_left: is neither true nor false",
                   "normalizer.normalizers[2].strip_right: is missing"}));
  EXPECT_EQ(problems_of(R"({"type":"NFC","strength":3})"), Lines{"normalizer.strength: is no setting of NFC"});
  EXPECT_EQ(problems_of(R"({"type":"Prepend"})"), Lines{"normalizer.prepend: is missing"});
  EXPECT_EQ(problems_of(R"({"type":"Replace","content":"x"})"), Lines{"normalizer.pattern: is missing"});
  EXPECT_EQ(problems_of(R"({"type":"Replace","pattern":{"Text":"y"},"content":"x"})"),
            Lines{"normalizer.pattern: is neither {\"String\": ...} nor {\"Regex\": ...}"});
  EXPECT_EQ(problems_of(R"({"type":"Precompiled","precompiled_charsmap":"AAA"})"),
            Lines{"normalizer.precompiled_charsmap: is no base64"});
  EXPECT_EQ(problems_of(R"({"type":"Precompiled","precompiled_charsmap":"AAAA"})"),
            Lines{"normalizer.precompiled_charsmap: is shorter than the length at its beginning"});
}

TEST(Normalizer, AnyBlockIsReadOrRefused) {
  const CounterRng rng(13, Stream::kTest);
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return rng.below(draw++, n); };
  size_t read = 0;
  for (int i = 0; i < 20000; ++i) {
    Problems problems;
    const auto normalizer = read_normalizer(random_block(below, 0), "normalizer", problems);
    if (normalizer == nullptr) continue;
    ++read;
    EXPECT_TRUE(problems.empty());
    const std::string source = random_utf8(rng, draw, 12);
    AlignedText text(source);
    normalizer->apply(text);
    ASSERT_TRUE(is_utf8(text.bytes()));
  }
  EXPECT_GT(read, 100u);
}

TEST(Base64, DecodesAndRefuses) {
  EXPECT_EQ(from_base64(""), "");
  EXPECT_EQ(from_base64("TQ=="), "M");
  EXPECT_EQ(from_base64("TWE="), "Ma");
  EXPECT_EQ(from_base64("TWFu"), "Man");
  EXPECT_EQ(from_base64("+/+/"), "\xFB\xFF\xBF");
  for (const char* bad : {"T", "TQ", "TQ=", "TQ===", "TR==", "TWF=", "T=Fu", "TW-_", "TWF u"})
    EXPECT_FALSE(from_base64(bad)) << bad;
}

std::string golden_charsmap() {
  const Json block = golden_block(rewriting_goldens(), "Precompiled-small", "normalizer");
  return *from_base64(block["precompiled_charsmap"].get<std::string>());
}

TEST(Charsmap, TakesTheShortestKey) {
  Problems problems;
  const auto map = Charsmap::read(golden_charsmap(), "charsmap", problems);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->replacement("\uFB01"), "fi");
  EXPECT_EQ(map->replacement("\uFB01xyz"), "fi");
  EXPECT_EQ(map->replacement("e\u0301"), "\u00E9");
  EXPECT_EQ(map->replacement("\u00AD"), "");
  EXPECT_FALSE(map->replacement("e"));
  EXPECT_FALSE(map->replacement("x"));
  EXPECT_FALSE(map->replacement(""));
  EXPECT_FALSE(map->replacement(std::string_view("\0", 1)));
}

TEST(Charsmap, RefusesWhatIsNone) {
  const std::string whole = golden_charsmap();
  const auto refused = [](std::string_view bytes) {
    Problems problems;
    const bool none = !Charsmap::read(bytes, "charsmap", problems);
    EXPECT_EQ(none, problems.size() == 1);
    return none;
  };
  EXPECT_FALSE(refused(whole));
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused(std::string_view("\0\0\0\0", 4)));
  EXPECT_TRUE(refused(std::string_view("\4\0\0\0abc", 7)));
  EXPECT_TRUE(
      refused(std::string_view("\xFF\xFF\xFF\xFF"
                               "abc",
                               7)));
  EXPECT_TRUE(
      refused(std::string_view("\4\0\0\0"
                               "abcd"
                               "\xFF",
                               9)));
}

TEST(Charsmap, DamageChangesOnlyTheResult) {
  const std::string whole = golden_charsmap();
  const CounterRng rng(14, Stream::kTest);
  uint64_t draw = 0;
  size_t read = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = i % 4 == 0 ? random_bytes(rng, draw, 4 + rng.below(draw, 200)) : whole;
    if (i % 4 == 0) bytes.replace(0, 4, std::string("\x20\0\0\0", 4));
    for (uint64_t n = rng.below(draw++, 20); n > 0 && i % 4 != 0; --n) {
      const size_t at = rng.below(draw++, std::min<size_t>(bytes.size(), 3000));
      bytes[at] = static_cast<char>(rng.below(draw++, 256));
    }
    if (i % 3 == 0) bytes.resize(rng.below(draw++, bytes.size() + 1));
    Problems problems;
    const auto normalizer = precompiled_normalizer(bytes, "charsmap", problems);
    if (normalizer == nullptr) continue;
    ++read;
    const std::string source = "e\u0301 \uFB01\u00AD\r\n \uFF21..." + random_utf8(rng, draw, 20);
    AlignedText text(source);
    normalizer->apply(text);
    ASSERT_TRUE(is_utf8(text.bytes()));
  }
  EXPECT_GT(read, 100u);
}

}  // namespace
}  // namespace transept
