#include "text/oniguruma.h"

#include <algorithm>
#include <utility>

namespace transept {
namespace {

// What Oniguruma's \s and \w hold, as members of a class; PCRE2's \s also has U+180E and its \w lacks marks.
constexpr std::string_view kSpaceSet =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kWordSet =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

constexpr int kDeepest = 32;  // nested classes

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool is_hex(char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

struct Refused {
  std::string what;
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string translate() {
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case '\\':
          escape();
          break;
        case '[':
          out_ += '[';
          at_ += 1;
          if (peek() == '^') take();
          members(0);
          out_ += ']';
          break;
        case '(':
          group();
          break;
        case '{':
          interval();
          break;
        default:
          take();
      }
    }
    return std::move(out_);
  }

 private:
  // 0 beyond the end.
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  void take(size_t count = 1) {
    out_ += in_.substr(at_, count);
    at_ += std::min(count, in_.size() - at_);
  }
  [[noreturn]] static void refuse(std::string what) { throw Refused{std::move(what)}; }
  [[noreturn]] void refuse_escape() const { refuse("the escape " + std::string(in_.substr(at_, 2))); }

  void escape() {
    const auto set = [&](std::string_view open, std::string_view members, std::string_view close) {
      out_.append(open).append(members).append(close);
      at_ += 2;
    };
    const std::string word = "[" + std::string(kWordSet) + "]";
    switch (peek(1)) {
      case 's':
        return set("[", kSpaceSet, "]");
      case 'S':
        return set("[^", kSpaceSet, "]");
      case 'w':
        return set("[", kWordSet, "]");
      case 'W':
        return set("[^", kWordSet, "]");
      case 'b':
        return set("(?:(?<=", word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word, "))");
      case 'B':
        return set("(?:(?<=", word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word, "))");
      case 'A':
      case 'z':
      case 'Z':
      case 'D':
        return take(2);
      default:
        common_escape();
    }
  }

  // Those that mean the same outside of classes and in them.
  void common_escape() {
    const char c = peek(1);
    if (at_ + 1 == in_.size()) refuse("a backslash at the end");
    if (!is_digit(c) && !is_letter(c)) return take(2);
    switch (c) {
      case 'd':
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return take(2);
      case 'v':
        out_ += "\\x0B";
        at_ += 2;
        return;
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code(4, 4);
      case 'x':
        if (peek(2) != '{') return code(1, 2);
        return braced_code();
      default:
        refuse_escape();
    }
  }

  // \uHHHH, \xH and \xHH, the latter two of ASCII only: beyond they are bytes.
  void code(size_t least, size_t most) {
    const size_t digits = at_ + 2;
    size_t end = digits;
    while (end < in_.size() && end - digits < most && is_hex(in_[end])) ++end;
    const std::string_view hex = in_.substr(digits, end - digits);
    if (hex.size() < least || (most == 2 && hex.size() == 2 && hex[0] > '7')) refuse_escape();
    out_.append("\\x{").append(hex).append("}");
    at_ = end;
  }

  void braced_code() {
    const size_t close = in_.find('}', at_);
    if (close == in_.npos) refuse_escape();
    const std::string_view hex = in_.substr(at_ + 3, close - at_ - 3);
    if (hex.empty() || !std::all_of(hex.begin(), hex.end(), is_hex)) refuse_escape();
    take(close + 1 - at_);
  }

  // \p{Name}: a general category of one or two letters, else a script, which PCRE2 would extend.
  void property() {
    const size_t close = in_.find('}', at_);
    if (peek(2) != '{' || close == in_.npos) refuse_escape();
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    bool negative = peek(1) == 'P';
    if (name.starts_with('^')) {
      negative = !negative;
      name.remove_prefix(1);
    }
    const auto fits = [](char c) { return is_letter(c) || c == '_'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), fits)) refuse("the property " + std::string(name));
    out_ += negative ? "\\P{" : "\\p{";
    if (name.size() > 2) out_ += "sc:";
    out_.append(name).append("}");
    at_ = close + 1;
  }

  // The members of a class up to its end, those of nested classes among them.
  void members(int depth) {
    if (depth > kDeepest) refuse("classes nested deeper than " + std::to_string(kDeepest));
    if (peek() == ']') refuse("a class that begins with ]");
    while (true) {
      if (at_ >= in_.size()) refuse("a class without an end");
      const char c = in_[at_];
      if (c == ']') {
        at_ += 1;
        return;
      }
      if (c == '&' && peek(1) == '&') refuse("the intersection && of classes");
      bool set = false;  // a hyphen behind it is a hyphen
      if (c == '[') {
        if (peek(1) == ':') refuse("a POSIX class");
        if (peek(1) == '^') refuse("a negated class within a class");
        if (out_.ends_with('-') && !out_.ends_with("\\-")) refuse("a range that ends in a class");
        at_ += 1;
        members(depth + 1);
        set = true;
      } else if (c == '\\') {
        set = class_escape();
      } else {
        take();
      }
      if (set && peek() == '-') {
        out_ += "\\-";
        at_ += 1;
      }
    }
  }

  // Whether it stands for more than one character.
  bool class_escape() {
    switch (peek(1)) {
      case 's':
        out_ += kSpaceSet;
        at_ += 2;
        return true;
      case 'S':
        out_ += "\\S\\x{180E}";
        at_ += 2;
        return true;
      case 'w':
        out_ += kWordSet;
        at_ += 2;
        return true;
      case 'D':
        take(2);
        return true;
      case 'b':
        out_ += "\\x08";
        at_ += 2;
        return false;
      case 'd':
      case 'p':
      case 'P':
        common_escape();
        return true;
      default:
        common_escape();
        return false;
    }
  }

  void group() {
    if (peek(1) != '?') return take();
    const std::string_view rest = in_.substr(at_);
    for (const std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"}) {
      if (rest.starts_with(known)) return take(known.size());
    }
    // Elsewhere (?i) reaches over the alternatives behind it as if they were a group.
    if (rest.starts_with("(?i)") && at_ == 0) return take(4);
    refuse("the group " + std::string(rest.substr(0, 3)));
  }

  void interval() {
    size_t at = at_ + 1, comma = 0;
    const size_t first = at;
    while (at < in_.size() && (is_digit(in_[at]) || (in_[at] == ',' && comma == 0))) {
      if (in_[at] == ',') comma = at;
      ++at;
    }
    const bool bare = at == first || (comma == first && at == first + 1);
    if (bare || at == in_.size() || in_[at] != '}') {  // no interval: a brace
      out_ += "\\{";
      at_ += 1;
      return;
    }
    const char next = at + 1 < in_.size() ? in_[at + 1] : '\0';
    if (next == '+' || (next == '?' && comma == 0)) refuse("an interval followed by " + std::string(1, next));
    if (comma == first) {
      out_ += "{0";
      at_ += 1;
    }
    take(at + 1 - at_);
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Translation oniguruma_to_pcre(std::string_view pattern) {
  try {
    return {Translator(pattern).translate(), ""};
  } catch (const Refused& refused) {
    return {std::nullopt, refused.what};
  }
}

}  // namespace transept
