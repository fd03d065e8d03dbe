#include "text/split_pattern.h"

#include "text/foreign_pattern.h"
#include "text/known_patterns.h"
#include "text/oniguruma.h"
#include "text/random_text.h"
#include "text/rewriting_goldens.h"

namespace transept {
namespace {

using Words = std::vector<std::string>;

// The matched stretches; those between stand in parentheses.
Words stretches(const SplitPattern& pattern, std::string_view text) {
  Words out;
  for_each_stretch(pattern, text, [&](size_t begin, size_t end, bool matched) {
    const std::string part(text.substr(begin, end - begin));
    out.push_back(matched ? part : "(" + part + ")");
  });
  return out;
}

std::unique_ptr<SplitPattern> foreign(const std::string& regex) {
  Problems problems;
  auto pattern = foreign_pattern(regex, "pattern", problems);
  for (const Problem& problem : problems) ADD_FAILURE() << regex << " " << problem.to_string();
  return pattern;
}

std::string pattern_of(const char* name) {
  const Json block = golden_block(rewriting_goldens(), name, "pre_tokenizer");
  const Json& split = block["type"] == "Sequence" ? block["pretokenizers"][0] : block;
  return split["pattern"]["Regex"].get<std::string>();
}

const std::string kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// B21 of the collected bugs.
TEST(SplitPattern, DigitsBlanksAndContractions) {
  const auto llama3 = known_pattern(pattern_of("Llama3")), qwen2 = known_pattern(pattern_of("Qwen2"));
  ASSERT_TRUE(llama3 != nullptr && qwen2 != nullptr);
  EXPECT_EQ(stretches(*llama3, "1234567 12"), (Words{"123", "456", "7", " ", "12"}));
  EXPECT_EQ(stretches(*qwen2, "1234 12"), (Words{"1", "2", "3", "4", " ", "1", "2"}));
  EXPECT_EQ(stretches(*llama3, "\u0967\u0968\u0969\u096A"), (Words{"\u0967\u0968\u0969", "\u096A"}));
  for (const auto* pattern : {llama3.get(), qwen2.get()}) {
    EXPECT_EQ(stretches(*pattern, "a   b"), (Words{"a", "  ", " b"}));
    EXPECT_EQ(stretches(*pattern, "a \n\n  b "), (Words{"a", " \n\n", " ", " b", " "}));
    EXPECT_EQ(stretches(*pattern, "I'LL we've"), (Words{"I", "'LL", " we", "'ve"}));
  }
}

TEST(SplitPattern, TheKnownPatternsAreKnown) {
  for (const char* name : {"Llama3", "Qwen2", "O200k", "Tekken", "DeepSeek3", "DeepSeek3Alone"}) {
    EXPECT_NE(known_pattern(pattern_of(name)), nullptr) << name;
  }
  EXPECT_NE(known_pattern(kGpt2), nullptr);
  EXPECT_NE(known_pattern("[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"), nullptr);
  EXPECT_EQ(known_pattern(kGpt2 + "|x"), nullptr);
  EXPECT_EQ(known_pattern(""), nullptr);
}

// Characters that PCRE2 knows as well as we do, at the borders of every class that the patterns tell apart.
std::string tricky_text(const CounterRng& rng, uint64_t& draw) {
  static const char* const kPieces[] = {
      "a",      "B",      "xyz",    "iPhone",     "ABC",    "'s",     "'LL",    "'\u017F", "'",      "''",
      " ",      "  ",     "\n",     "\r\n",       "\t",     "\u00A0", "\u3000", "\u2028",  "\u0085", "1",
      "23",     "456789", "\u0663", "\u00BD",     "\u2167", "!",      "?!",     "/",       "//\n",   "$",
      "_",      "+=",     "\u2026", "\u20AC",     "\u00E9", "\u0416", "\u0436", "\u01C5",  "\u02B0", "\u00AA",
      "\u4E2D", "\u6587", "\u30AB", "\u3042",     "\u0915", "\u093F", "\u0301", "\u20DD",  "\u05D0", "\u0627",
      "\u064E", "\uAC00", "\u0E01", "\U0001F642", "\u200D", "\uFE0F", "\uFEFF", "\u00AD",  "\u0001", "\uE000"};
  std::string text;
  for (uint64_t i = rng.below(draw++, 20); i > 0; --i) text += kPieces[rng.below(draw++, std::size(kPieces))];
  return text;
}

// The matchers written by hand against the regular expressions themselves.
TEST(SplitPattern, KnownPatternsMatchAsTheirTextSays) {
  std::vector<std::string> regexes{kGpt2, "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"};
  for (const char* name : {"Llama3", "Qwen2", "O200k", "Tekken", "DeepSeek3", "DeepSeek3Alone"}) {
    regexes.push_back(pattern_of(name));
  }
  const CounterRng rng(31, Stream::kTest);
  uint64_t draw = 0;
  for (const std::string& regex : regexes) {
    const auto by_hand = known_pattern(regex), by_pcre = foreign(regex);
    ASSERT_TRUE(by_hand != nullptr && by_pcre != nullptr);
    for (int i = 0; i < 10000; ++i) {
      const std::string text = tricky_text(rng, draw);
      ASSERT_EQ(stretches(*by_hand, text), stretches(*by_pcre, text)) << regex << " of " << text;
    }
  }
}

TEST(SplitPattern, LongRunsTakeLinearTime) {
  const size_t length = size_t{1} << 20;
  for (const char* name : {"Llama3", "O200k", "DeepSeek3Alone", "Bloom"}) {
    Problems problems;
    const auto pattern = regex_pattern(pattern_of(name), "pattern", problems);
    for (const char* one : {"a", "A", " ", "\n", "!", "1", "\u0301", "\u4E2D", "\u00AA"}) {
      std::string text;
      for (size_t i = 0; i < length; ++i) text += one;
      size_t end = 0;
      for_each_stretch(*pattern, text, [&](size_t, size_t to, bool) { end = to; });
      EXPECT_EQ(end, text.size());
    }
  }
}

TEST(SplitPattern, EmptyMatchesAreThoseOfOniguruma) {
  EXPECT_EQ(stretches(*foreign("x*"), "axxb"), (Words{"", "(a)", "xx", "(b)", ""}));
  EXPECT_EQ(stretches(*foreign("$"), "a\nb"), (Words{"(a)", "", "(\nb)", ""}));
  EXPECT_EQ(stretches(*foreign("x*"), ""), Words{});
}

// What Oniguruma (in tokenizers 0.23.3) makes of constructs that PCRE2 reads otherwise.
TEST(SplitPattern, MeansWhatOnigurumaMeans) {
  const auto all = [](const std::string& regex, const std::string& text) { return stretches(*foreign(regex), text); };
  EXPECT_EQ(all("[a[bc]d]+", "abcd]"), (Words{"abcd", "(])"}));
  EXPECT_EQ(all("[^a[bc]]+", "abxyc]"), (Words{"(ab)", "xy", "(c)", "]"}));
  EXPECT_EQ(all(R"([\s-z]+)", "a -z"), (Words{"(a)", " -z"}));
  EXPECT_EQ(all(R"(\s+)", "a\u180E b"), (Words{"(a\u180E)", " ", "(b)"}));
  EXPECT_EQ(all(R"([\S]+)", "a\u180E b"), (Words{"a\u180E", "( )", "b"}));
  EXPECT_EQ(all(R"(\w+)", "ne\u0301_\u00B2 \u2460"), (Words{"ne\u0301_\u00B2", "( \u2460)"}));
  EXPECT_EQ(all(R"(\bb)", "b \u0301b ab"), (Words{"b", "( \u0301b ab)"}));
  EXPECT_EQ(all("^b", "a\nb\n"), (Words{"(a\n)", "b", "(\n)"}));
  EXPECT_EQ(all("a$", "a\na"), (Words{"a", "(\n)", "a"}));
  EXPECT_EQ(all("a.c", "a\nc abc"), (Words{"(a\nc )", "abc"}));
  EXPECT_EQ(all(R"(\v)", "a\v\n"), (Words{"(a)", "\v", "(\n)"}));
  EXPECT_EQ(all(R"(\u00e9|\x41|\x{1F642})", "\u00E9A\U0001F642"), (Words{"\u00E9", "A", "\U0001F642"}));
  EXPECT_EQ(all("a{,2}b", "aaab"), (Words{"(a)", "aab"}));
  EXPECT_EQ(all("a{x}", "a{x}"), Words{"a{x}"});
  EXPECT_EQ(all(R"(\p{Han}+)", "\u3001\u6F22\u5B57\u3005"), (Words{"(\u3001)", "\u6F22\u5B57\u3005"}));
  EXPECT_EQ(all(R"(\p{^L}+|\P{^Lu})", "aB1"), (Words{"(a)", "B", "1"}));
  EXPECT_EQ(all("(?i:ab)c", "ABc ABC"), (Words{"ABc", "( ABC)"}));
}

TEST(SplitPattern, RefusesWhatTheTwoEnginesReadDifferently) {
  for (const char* regex : {"[a&&b]",
                            "[[:alpha:]]",
                            "[[^a]b]",
                            "[]a]",
                            "[a",
                            "[a-[b]]",
                            R"(\h)",
                            R"(\R)",
                            R"(\X)",
                            R"(\G)",
                            R"(\K)",
                            R"(\1)",
                            R"(\0)",
                            R"(\Q)",
                            R"(\k<n>)",
                            R"(\xE9)",
                            R"(\u12)",
                            R"(\x{})",
                            R"(\p)",
                            R"(\p{)",
                            R"(\p{sc:Han})",
                            R"(\p{Nonsense})",
                            R"([\W])",
                            "a(?i)b",
                            "(?m:a)",
                            "(?s)a",
                            "(?<n>a)",
                            "(?P<n>a)",
                            "(?#x)",
                            "(?~a)",
                            "a{2}?",
                            "a{1,3}+",
                            "\\",
                            "(",
                            ")",
                            "*a",
                            R"(\N)",
                            R"(\C)"}) {
    Problems problems;
    EXPECT_EQ(regex_pattern(regex, "pattern", problems), nullptr) << regex;
    ASSERT_EQ(problems.size(), 1u) << regex;
    EXPECT_EQ(problems[0].where, "pattern");
  }
}

TEST(SplitPattern, BoundsHold) {
  Problems problems;
  EXPECT_EQ(regex_pattern(std::string(100000, 'a'), "pattern", problems), nullptr);
  EXPECT_EQ(regex_pattern(std::string(5000, '(') + std::string(5000, ')'), "pattern", problems), nullptr);
  EXPECT_EQ(regex_pattern(std::string(5000, '['), "pattern", problems), nullptr);
  EXPECT_EQ(problems.size(), 3u);
  const auto explodes = foreign("(a+)+[bc]");
  EXPECT_THROW(stretches(*explodes, std::string(64, 'a')), InputError);
  EXPECT_EQ(stretches(*explodes, "aab"), Words{"aab"});  // the next text is none the worse
  const auto deep = foreign("(?:a|b)+c");
  EXPECT_EQ(stretches(*deep, std::string(10000, 'a') + "c").size(), 1u);
}

TEST(SplitPattern, RandomPatternsAreCompiledOrRefused) {
  static const char* const kPieces[] = {"a",   "\\s", "\\S", "\\p{L}", "[",   "]",      "^",     "-", "(", ")",
                                        "(?:", "(?!", "|",   "+",      "*",   "?",      "{2,3}", "{", "}", ".",
                                        "$",   "\\",  "&&",  "\\b",    "\\w", "\u00E9", " ",     ","};
  const CounterRng rng(32, Stream::kTest);
  uint64_t draw = 0;
  size_t compiled = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string regex;
    for (uint64_t n = rng.below(draw++, 12); n > 0; --n) regex += kPieces[rng.below(draw++, std::size(kPieces))];
    Problems problems;
    const auto pattern = regex_pattern(regex, "pattern", problems);
    ASSERT_EQ(pattern == nullptr, problems.size() == 1) << regex;
    if (pattern == nullptr) continue;
    ++compiled;
    const std::string text = random_utf8(rng, draw, 10);
    std::string joined;
    for_each_stretch(*pattern, text,
                     [&](size_t begin, size_t end, bool) { joined += text.substr(begin, end - begin); });
    ASSERT_EQ(joined, text) << regex;
  }
  EXPECT_GT(compiled, 1000u);
}

}  // namespace
}  // namespace transept
