// Each function below is one regular expression read alternative by alternative, from left to right as a backtracking
// engine tries them; its comment is the expression. All are matched in one pass over the text.
#include "text/known_patterns.h"

#include <algorithm>
#include <array>
#include <string>

#include "text/unicode.h"

namespace transept {
namespace {

struct Seen {
  uint32_t traits = 0;  // 0 at the end of the text
  size_t end = 0;       // of the character
};

inline Seen look(std::string_view text, size_t at) {
  if (at >= text.size()) return {0, at};
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {unicode_tables::kAsciiTraits[byte], at + 1};
  const Character character = character_at(text, at);
  return {traits(character.point), at + character.length};
}

// The end of the run of characters that have (`held`), or have not, one of the traits.
template <bool held>
inline size_t run(std::string_view text, size_t at, uint32_t mask) {
  while (at < text.size()) {
    const Seen seen = look(text, at);
    if (((seen.traits & mask) != 0) != held) break;
    at = seen.end;
  }
  return at;
}

inline size_t run_at_most(std::string_view text, size_t at, uint32_t mask, size_t most) {
  for (size_t count = 0; count < most; ++count) {
    const Seen seen = look(text, at);
    if (!(seen.traits & mask)) break;
    at = seen.end;
  }
  return at;
}

constexpr uint32_t kWordLike = kLetter | kNumber | kSpace;

// 's|'t|'re|'ve|'m|'ll|'d: its end, or `at`. `any_case` as (?i:...), which U+017F, the long s, satisfies too.
inline size_t contraction(std::string_view text, size_t at, bool any_case) {
  if (at + 1 >= text.size() || text[at] != '\'') return at;
  const auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return 0;
    const char c = text[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  switch (letter(at + 1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'r':
    case 'v':
      return letter(at + 2) == 'e' ? at + 3 : at;
    case 'l':
      return letter(at + 2) == 'l' ? at + 3 : at;
    default:
      return any_case && text.substr(at + 1, 2) == "\u017F" ? at + 3 : at;
  }
}

// \s+(?!\S)|\s+ at white space: all of it at the end of the text, else all but its last character, else that one.
inline size_t blanks(std::string_view text, size_t at) {
  const size_t end = run<true>(text, at, kSpace);
  if (end == text.size()) return end;
  const size_t last = character_before(text, end);
  return last > at ? last : end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at white space: up to the last line end in it, where there is one.
inline size_t lines_or_blanks(std::string_view text, size_t at) {
  const size_t end = run<true>(text, at, kSpace);
  for (size_t line = end; line > at; --line) {
    if (text[line - 1] == '\n' || text[line - 1] == '\r') return line;
  }
  if (end == text.size()) return end;
  const size_t last = character_before(text, end);
  return last > at ? last : end;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2 {
  size_t operator()(std::string_view text, size_t at) const {
    const size_t end = contraction(text, at, false);
    if (end > at) return end;
    const size_t word = at + (text[at] == ' ');
    const uint32_t kind = look(text, word).traits;
    if (kind & kLetter) return run<true>(text, word, kLetter);
    if (kind & kNumber) return run<true>(text, word, kNumber);
    if (word < text.size() && !(kind & kSpace)) return run<false>(text, word, kWordLike);
    return blanks(text, at);
  }
};

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,DIGITS}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
struct Llama3 {
  size_t digits;
  size_t operator()(std::string_view text, size_t at) const {
    const Seen first = look(text, at);
    if (first.traits & kLetter) return run<true>(text, first.end, kLetter);
    if (first.traits & kNumber) return run_at_most(text, at, kNumber, digits);
    const size_t end = contraction(text, at, true);
    if (end > at) return end;
    if (!(first.traits & kNewline)) {
      const Seen second = look(text, first.end);
      if (second.traits & kLetter) return run<true>(text, second.end, kLetter);
    }
    const size_t other = at + (text[at] == ' ');
    if (other < text.size() && !(look(text, other).traits & kWordLike)) {
      return run<true>(text, run<false>(text, other, kWordLike), kNewline);
    }
    return lines_or_blanks(text, at);
  }
};

// PREFIX?UPPER*LOWER+CONTRACTION?|PREFIX?UPPER+LOWER*CONTRACTION?|\p{N}{1,DIGITS}|
// ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|
// \s+(?!\S)|\s+
// with PREFIX [^\r\n\p{L}\p{N}], UPPER [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], LOWER [\p{Ll}\p{Lm}\p{Lo}\p{M}] and CONTRACTION
// (?i:'s|'t|'re|'ve|'m|'ll|'d), which not all have.
struct O200k {
  size_t digits;
  bool contractions;

  // UPPER*LOWER+ from `at`; `at` when it does not match.
  static size_t ends_lower(std::string_view text, size_t at) {
    size_t upper = at, last_common = at;  // the end of the last character that is in both
    while (upper < text.size()) {
      const Seen seen = look(text, upper);
      if (!(seen.traits & kUpperLike)) break;
      upper = seen.end;
      if (seen.traits & kLowerLike) last_common = upper;
    }
    const size_t lower = run<true>(text, upper, kLowerLike);
    return lower > upper ? lower : last_common;
  }
  // UPPER+LOWER*
  static size_t begins_upper(std::string_view text, size_t at) {
    const size_t upper = run<true>(text, at, kUpperLike);
    return upper > at ? run<true>(text, upper, kLowerLike) : at;
  }

  size_t operator()(std::string_view text, size_t at) const {
    const Seen first = look(text, at);
    const bool prefix = !(first.traits & (kNewline | kLetter | kNumber));
    for (const auto word : {ends_lower, begins_upper}) {
      size_t begin = prefix ? first.end : at, end = word(text, begin);
      // A mark is a prefix first, and when that fails a letter.
      if (end == begin && prefix && (first.traits & kMark)) end = word(text, begin = at);
      if (end > begin) return contractions ? contraction(text, end, true) : end;
    }
    if (first.traits & kNumber) return run_at_most(text, at, kNumber, digits);
    const size_t other = at + (text[at] == ' ');
    if (other < text.size() && !(look(text, other).traits & kWordLike)) {
      size_t end = run<false>(text, other, kWordLike);
      while (end < text.size() && (text[end] == '\r' || text[end] == '\n' || text[end] == '/')) ++end;
      return end;
    }
    return lines_or_blanks(text, at);
  }
};

// [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// `at` where nothing matches.
struct DeepSeek3 {
  static bool ascii_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
  size_t operator()(std::string_view text, size_t at) const {
    constexpr uint32_t kWordMark = kLetter | kMark, kSign = kPunctuation | kSymbol;
    const Seen first = look(text, at);
    if (first.end == at + 1 && (first.traits & kSign) && first.end < text.size() && ascii_letter(text[first.end])) {
      size_t end = first.end;
      while (end < text.size() && ascii_letter(text[end])) ++end;
      return end;
    }
    if (first.traits & kWordMark) return run<true>(text, first.end, kWordMark);
    if (!(first.traits & (kNewline | kSign))) {
      const Seen second = look(text, first.end);
      if (second.traits & kWordMark) return run<true>(text, second.end, kWordMark);
    }
    const size_t sign = at + (text[at] == ' ');
    if (look(text, sign).traits & kSign) return run<true>(text, run<true>(text, sign, kSign), kNewline);
    return first.traits & kSpace ? lines_or_blanks(text, at) : at;
  }
};

// \p{N}{1,3}
struct Digits {
  size_t operator()(std::string_view text, size_t at) const { return run_at_most(text, at, kNumber, 3); }
};

// [\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+
struct HanKana {
  static bool in(uint32_t point) {
    return (point >= 0x4E00 && point <= 0x9FA5) || (point >= 0x3040 && point <= 0x30FF);
  }
  size_t operator()(std::string_view text, size_t at) const {
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0xE3) {
      const Character character = character_at(text, at);
      if (!in(character.point)) break;
      at += character.length;
    }
    return at;
  }
};

template <class Match>
class Known : public SplitPattern {
 public:
  explicit Known(Match match) : match_(match) {}
  std::optional<PatternMatch> find(std::string_view text, size_t from) const override {
    for (size_t at = from; at < text.size(); at = next_character(text, at)) {
      const size_t end = match_(text, at);
      if (end > at) return PatternMatch{at, end};
    }
    return std::nullopt;
  }

 private:
  Match match_;
};

template <class Match>
std::unique_ptr<SplitPattern> make(Match match) {
  return std::make_unique<Known<Match>>(match);
}

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kContractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
constexpr std::string_view kBlanks = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)";

std::string llama3(std::string_view digits) {
  return std::string(kContractions) + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" + std::string(digits) +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)" + std::string(kBlanks);
}

std::string o200k(std::string_view digits, bool contractions) {
  const std::string tail = contractions ? std::string(kContractions) + "?" : "";
  return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" + tail +
         R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" + tail + "|" +
         std::string(digits) + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)" + std::string(kBlanks);
}

}  // namespace

std::unique_ptr<SplitPattern> gpt2_pattern() { return make(Gpt2{}); }

std::unique_ptr<SplitPattern> known_pattern(std::string_view regex) {
  // Some files write line ends as they are, others as escapes.
  std::string text;
  for (const char c : regex) {
    if (c == '\r') {
      text += "\\r";
    } else if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  constexpr std::string_view kThree = R"(\p{N}{1,3})", kOne = R"(\p{N})";
  if (text == kGpt2) return make(Gpt2{});
  if (text == llama3(kThree)) return make(Llama3{3});
  if (text == llama3(kOne)) return make(Llama3{1});  // Qwen2
  if (text == o200k(kThree, true)) return make(O200k{3, true});
  if (text == o200k(kOne, false)) return make(O200k{1, false});  // Mistral's Tekken
  if (text == std::string(kDeepSeek3) + std::string(kBlanks)) return make(DeepSeek3{});
  if (text == kThree) return make(Digits{});
  if (text == "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+") return make(HanKana{});
  return nullptr;
}

}  // namespace transept
