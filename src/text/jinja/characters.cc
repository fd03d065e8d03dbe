#include "text/jinja/characters.h"

#include <string.h>  // memmem

#include <algorithm>
#include <iterator>

#include "text/jinja/case_tables.h"

namespace transept::jinja {
namespace {

template <size_t R, size_t T>
void append_mapped(std::string& out, char32_t c, const CaseRange (&ranges)[R], const CaseText (&texts)[T]) {
  const auto* t = std::lower_bound(std::begin(texts), std::end(texts), c,
                                   [](const CaseText& entry, char32_t value) { return entry.from < value; });
  if (t != std::end(texts) && t->from == c) {
    for (const char8_t* byte = t->to; *byte != 0; ++byte) out += static_cast<char>(*byte);
    return;
  }
  const auto* r = std::lower_bound(std::begin(ranges), std::end(ranges), c,
                                   [](const CaseRange& entry, char32_t value) { return entry.last < value; });
  // Two runs of every second character can lie in each other.
  for (; r != std::end(ranges) && r->first <= c; ++r) {
    if (static_cast<int32_t>(c - r->first) % r->step == 0)
      return append_character(out, static_cast<char32_t>(static_cast<int32_t>(c) + r->distance));
  }
  append_character(out, c);
}

void append_upper(std::string& out, char32_t c) { append_mapped(out, c, kUpperRanges, kUpperTexts); }
void append_lower(std::string& out, char32_t c) { append_mapped(out, c, kLowerRanges, kLowerTexts); }
void append_title(std::string& out, char32_t c) { append_mapped(out, c, kTitleRanges, kTitleTexts); }

// What the character is in its own right: a letter that has another case.
bool differs(void (*append)(std::string&, char32_t), char32_t c) {
  std::string mapped, same;
  append(mapped, c);
  append_character(same, c);
  return mapped != same;
}
bool is_upper(char32_t c) { return differs(append_lower, c); }
bool is_lower(char32_t c) { return differs(append_upper, c) && !is_upper(c); }
bool is_cased(char32_t c) { return differs(append_upper, c) || differs(append_lower, c); }

// Calls use(character) for each.
template <class F>
void each(std::string_view text, const F& use) {
  for (size_t at = 0; at < text.size(); at += character_bytes(text[at])) use(character_at(text, at));
}

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

template <class Strips>
std::string_view strip_left_if(std::string_view text, const Strips& strips) {
  while (!text.empty() && strips(character_at(text, 0))) text.remove_prefix(character_bytes(text[0]));
  return text;
}

template <class Strips>
std::string_view strip_right_if(std::string_view text, const Strips& strips) {
  while (!text.empty() && strips(character_at(text, last_character(text)))) text = text.substr(0, last_character(text));
  return text;
}

auto among(std::string_view characters) {
  std::u32string set;
  each(characters, [&](char32_t c) { set += c; });
  return [set = std::move(set)](char32_t c) { return set.find(c) != std::u32string::npos; };
}

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

char32_t character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  switch (character_bytes(text[at])) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

void append_character(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  const auto rest = [&](int shift) { put(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    rest(6);
  } else {
    put(0xF0 | c >> 18);
    rest(12);
    rest(6);
  }
  rest(0);
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> all;
  for (size_t at = 0; at < text.size(); at += character_bytes(text[at]))
    all.push_back(text.substr(at, character_bytes(text[at])));
  return all;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Of the characters that Python does not print: controls, separators, formats, private use and none at all. Those not
// yet assigned are taken for printable.
bool is_printable(char32_t c) {
  const auto in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return !(c < 0x20 || in(0x7F, 0xA0) || c == 0xAD || in(0x600, 0x605) || c == 0x61C || c == 0x6DD || c == 0x70F ||
           c == 0x1680 || c == 0x180E || in(0x2000, 0x200F) || in(0x2028, 0x202F) || in(0x205F, 0x206F) ||
           c == 0x3000 || in(0xE000, 0xF8FF) || c == 0xFEFF || in(0xFFF9, 0xFFFB) || (c & 0xFFFE) == 0xFFFE ||
           in(0xE0001, 0xE007F) || c >= 0xF0000);
}

std::string_view strip_left(std::string_view text) { return strip_left_if(text, is_space); }
std::string_view strip_right(std::string_view text) { return strip_right_if(text, is_space); }
std::string_view strip_left(std::string_view text, std::string_view characters) {
  return strip_left_if(text, among(characters));
}
std::string_view strip_right(std::string_view text, std::string_view characters) {
  return strip_right_if(text, among(characters));
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = character_at(text, at);
    size_t next = at + character_bytes(text[at]);
    if (ends_line(c)) {
      lines.push_back(text.substr(begin, at - begin));
      if (c == '\r' && next < text.size() && text[next] == '\n') ++next;
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string upper(std::string_view text) {
  std::string out;
  each(text, [&](char32_t c) { append_upper(out, c); });
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  each(text, [&](char32_t c) { append_lower(out, c); });
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  std::string out;
  append_title(out, character_at(text, 0));
  return out + lower(text.substr(character_bytes(text[0])));
}

std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  each(text, [&](char32_t c) {
    inside ? append_lower(out, c) : append_title(out, c);
    inside = is_cased(c);
  });
  return out;
}

bool is_upper_text(std::string_view text) {
  bool any = false, all = true;
  each(text, [&](char32_t c) {
    any = any || is_upper(c);
    all = all && !is_lower(c);
  });
  return any && all;
}

bool is_lower_text(std::string_view text) {
  bool any = false, all = true;
  each(text, [&](char32_t c) {
    any = any || is_lower(c);
    all = all && !is_upper(c);
  });
  return any && all;
}

size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

}  // namespace transept::jinja
