#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/problem.h"
#include "text/jinja/characters.h"
#include "text/utf8.h"

namespace transept::jinja {
namespace {

using Kind = Token::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
// Python's \w, with every character beyond ASCII taken for a letter.
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string quoted(std::string_view what) {
  std::string out = "\"";
  out += what;
  return out += '"';
}

// Every line ends with \n alone, and the last one with nothing.
std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

// The longest come first.
constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : source_(with_plain_newlines(source)), where_(where) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text();
    tokens_.push_back({Kind::kEnd, line_, ""});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail(what, line_); }
  [[noreturn]] void fail(const std::string& what, int line) const {
    throw InputError(where_ + ": line " + std::to_string(line), what);
  }
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool sees(std::string_view what) const { return rest().starts_with(what); }
  void advance(size_t n) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + n), '\n'));
    at_ += n;
  }
  // Bytes of white space from `from` on.
  size_t space(size_t from) const {
    const std::string_view behind = std::string_view(source_).substr(from);
    return behind.size() - strip_left(behind).size();
  }
  // Bytes of the end of a tag, `close`, here; 0: none. `-` before it takes the white space behind it, `+` nothing, and
  // without either `trims` takes the newline behind it.
  size_t tag_end(std::string_view close, bool plus, bool trims) const {
    const std::string_view s = rest();
    if (s.starts_with('-') && s.substr(1).starts_with(close)) return 1 + close.size() + space(at_ + 1 + close.size());
    if (plus && s.starts_with('+') && s.substr(1).starts_with(close)) return 1 + close.size();
    if (!s.starts_with(close)) return 0;
    return close.size() + (trims && s.substr(close.size()).starts_with('\n') ? 1 : 0);
  }
  void end_tag(size_t bytes) {
    advance(bytes);
    line_starting_ = source_[at_ - 1] == '\n';
  }

  // Text up to the next tag, and that tag.
  void text() {
    size_t open = at_;
    while (true) {
      open = source_.find('{', open);
      if (open == source_.npos) break;
      const char next = open + 1 < source_.size() ? source_[open + 1] : '\0';
      if (next == '%' || next == '{' || next == '#') break;
      ++open;
    }
    if (open == source_.npos) {
      add_data(rest());
      return advance(source_.size() - at_);
    }
    const char type = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    const std::string_view all = rest().substr(0, open - at_);
    add_data(before_tag(all, sign, type == '{'));
    advance(open - at_);
    const size_t begin = sign == '-' || sign == '+' ? 3 : 2;
    if (type == '%' && raw(begin)) return;
    const int line = line_;
    advance(begin);
    line_starting_ = false;
    if (type == '#') return comment(line);
    tokens_.push_back({type == '%' ? Kind::kBlockBegin : Kind::kVariableBegin, line, ""});
    tag(type == '%');
  }

  // The text as its tag leaves it.
  std::string_view before_tag(std::string_view all, char sign, bool variable) const {
    if (sign == '-') return strip_right(all);
    if (sign == '+' || variable) return all;
    const size_t newline = all.rfind('\n');
    if (newline == all.npos && !line_starting_) return all;
    const size_t begin = newline == all.npos ? 0 : newline + 1;
    return strip_left(all.substr(begin)).empty() ? all.substr(0, begin) : all;
  }

  void add_data(std::string_view data) {
    if (!data.empty()) tokens_.push_back({Kind::kData, line_, std::string(data)});
  }

  // Opened at the very end it is nothing, as in jinja2; and so is a raw block.
  void comment(int line) {
    if (at_ == source_.size()) return;
    const size_t close = source_.find("#}", at_);
    if (close == source_.npos) fail("a comment is not closed", line);
    const bool signed_end = close > at_ && (source_[close - 1] == '-' || source_[close - 1] == '+');
    advance(close - at_ - (signed_end ? 1 : 0));
    end_tag(tag_end("#}", true, true));
  }

  // {% raw %} ... {% endraw %}, when that is what the tag is; `begin` bytes open it.
  bool raw(size_t begin) {
    size_t at = at_ + begin + space(at_ + begin);
    if (source_.compare(at, 3, "raw") != 0) return false;
    at += 3;
    at += space(at);
    const bool minus = source_.compare(at, 3, "-%}") == 0;
    if (!minus && source_.compare(at, 2, "%}") != 0) return false;
    at += minus ? 3 : 2;
    if (minus) at += space(at);
    const int line = line_;
    advance(at - at_);
    line_starting_ = source_[at_ - 1] == '\n';
    if (at_ == source_.size()) return true;
    for (size_t open = source_.find("{%", at_); open != source_.npos; open = source_.find("{%", open + 1)) {
      const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
      size_t end = open + (sign == '-' || sign == '+' ? 3 : 2);
      end += space(end);
      if (source_.compare(end, 6, "endraw") != 0) continue;
      end += 6;
      end += space(end);
      const std::string_view all = rest().substr(0, open - at_);
      const size_t from = at_;
      const int from_line = line_;
      at_ = end;
      const size_t close = tag_end("%}", true, true);
      at_ = from;
      if (close == 0) continue;
      line_ = from_line;
      add_data(before_tag(all, sign, false));
      advance(end - at_);
      end_tag(close);
      return true;
    }
    fail("a raw block is not closed", line);
  }

  // The tokens of a tag, and its end.
  void tag(bool block) {
    std::string open;  // brackets
    while (true) {
      if (open.empty()) {
        if (const size_t n = block ? tag_end("%}", true, true) : tag_end("}}", false, false)) {
          tokens_.push_back({block ? Kind::kBlockEnd : Kind::kVariableEnd, line_, ""});
          return end_tag(n);
        }
      }
      if (at_ >= source_.size()) fail("the template ends inside a tag");
      if (const size_t n = space(at_)) {
        advance(n);
      } else if (is_digit(source_[at_])) {
        number();
      } else if (is_word(source_[at_])) {
        size_t word = 1;
        while (word < rest().size() && is_word(rest()[word])) ++word;
        tokens_.push_back({Kind::kName, line_, std::string(rest().substr(0, word))});
        advance(word);
      } else if (source_[at_] == '"' || source_[at_] == '\'') {
        string();
      } else {
        const auto op = std::find_if(kOperators.begin(), kOperators.end(), [&](auto o) { return sees(o); });
        if (op == kOperators.end()) fail(quoted({&source_[at_], 1}) + " is not expected here");
        balance(open, (*op)[0]);
        tokens_.push_back({Kind::kOperator, line_, std::string(*op)});
        advance(op->size());
      }
    }
  }

  void balance(std::string& open, char c) const {
    if (c == '{') open += '}';
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c != '}' && c != ')' && c != ']') return;
    if (open.empty() || open.back() != c) {
      fail(quoted({&c, 1}) + " closes nothing" + (open.empty() ? "" : "; expected " + quoted({&open.back(), 1})));
    }
    open.pop_back();
  }

  // Bytes of (\d+_)*\d+ from `from` on; 0: none.
  size_t digits(size_t from) const {
    size_t at = from;
    while (at < source_.size() &&
           (is_digit(source_[at]) || (source_[at] == '_' && at > from && at + 1 < source_.size() &&
                                      is_digit(source_[at + 1]) && source_[at - 1] != '_')))
      ++at;
    return at - from;
  }

  void number() {
    const size_t whole = digits(at_);
    size_t fraction = 0, exponent = 0, at = at_ + whole;
    if (at < source_.size() && source_[at] == '.') {
      if (const size_t n = digits(at + 1)) fraction = n + 1;
    }
    at += fraction;
    if (at < source_.size() && (source_[at] == 'e' || source_[at] == 'E')) {
      const bool sign = at + 1 < source_.size() && (source_[at + 1] == '+' || source_[at + 1] == '-');
      if (const size_t n = digits(at + 1 + sign)) exponent = n + 1 + sign;
    }
    // What follows a dot is no float: x.1.2 is x.1 and then .2.
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if ((fraction > 0 || exponent > 0) && !after_dot) {
      std::string plain(rest().substr(0, whole + fraction + exponent));
      const size_t n = plain.size();
      std::erase(plain, '_');
      Token token{Kind::kFloat, line_, ""};
      token.number = std::strtod(plain.c_str(), nullptr);
      tokens_.push_back(std::move(token));
      return advance(n);
    }
    integer();
  }

  void integer() {
    int base = 10;
    size_t n = 0;
    if (source_[at_] == '0') {
      const char letter = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
      base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
      const auto fits = [&](char c) {
        return base == 16 ? is_hex(c) : is_digit(c) && c - '0' < (base == 10 ? 1 : base);
      };
      const size_t begin = base == 10 ? 1 : 2;
      n = begin;
      while (at_ + n < source_.size()) {
        const bool gap = source_[at_ + n] == '_';
        if (!(at_ + n + gap < source_.size() && fits(source_[at_ + n + gap]))) break;
        n += gap + 1;
      }
      if (n == begin && base != 10) {  // "0x" alone is 0 and a name
        base = 10;
        n = 1;
      }
    } else {
      n = digits(at_);
    }
    std::string plain(rest().substr(0, n));
    std::erase(plain, '_');
    const char* first = plain.data() + (base == 10 ? 0 : 2);
    Token token{Kind::kInteger, line_, plain};
    const auto [end, error] = std::from_chars(first, plain.data() + plain.size(), token.integer, base);
    if (error != std::errc()) fail("the integer " + plain + " is beyond 64 bits");
    tokens_.push_back(std::move(token));
    advance(n);
  }

  void string() {
    const char quote = source_[at_];
    const int line = line_;
    std::string value;
    size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != quote;) {
      if (source_[at] != '\\') {
        value += source_[at++];
        continue;
      }
      if (at + 1 >= source_.size()) break;
      at += escape(at, value);
    }
    if (at >= source_.size()) fail("a string is not closed", line);
    tokens_.push_back({Kind::kString, line, std::move(value)});
    advance(at + 1 - at_);
  }

  // Resolves the escape at `at` (a backslash and at least one character) as Python does; gives its bytes.
  size_t escape(size_t at, std::string& value) const {
    const char c = source_[at + 1];
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeans = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t letter = kLetters.find(c); letter != kLetters.npos) {
      value += kMeans[letter];
      return 2;
    }
    if (c == '\n') return 2;
    if (c >= '0' && c <= '7') {
      char32_t code = 0;
      size_t n = 1;
      while (n < 4 && at + n < source_.size() && source_[at + n] >= '0' && source_[at + n] <= '7')
        code = code * 8 + static_cast<char32_t>(source_[at + n++] - '0');
      append_character(value, code);
      return n;
    }
    const size_t digits_wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits_wanted > 0) {
      const std::string_view hex = std::string_view(source_).substr(at + 2, digits_wanted);
      if (hex.size() < digits_wanted || !std::all_of(hex.begin(), hex.end(), is_hex))
        fail("a string holds a cut escape of " + quoted({&c, 1}));
      uint32_t code = 0;
      std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail("a string holds an escape that is no character");
      append_character(value, code);
      return 2 + digits_wanted;
    }
    if (c == 'N') fail("named characters (\\N) are not supported");
    value += '\\';
    return 1;
  }

  std::string source_;
  const std::string& where_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& where) {
  if (!is_utf8(source)) throw InputError(where, "is not valid UTF-8");
  return Lexer(source, where).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Kind::kData:
      return "text";
    case Kind::kBlockBegin:
      return "a tag";
    case Kind::kBlockEnd:
      return "the end of the tag";
    case Kind::kVariableBegin:
      return "an expression";
    case Kind::kVariableEnd:
      return "the end of the expression";
    case Kind::kEnd:
      return "the end of the template";
    case Kind::kString:
      return "a string";
    case Kind::kInteger:
    case Kind::kFloat:
      return "a number";
    case Kind::kName:
    case Kind::kOperator:
      break;
  }
  return quoted(token.text);
}

}  // namespace transept::jinja
