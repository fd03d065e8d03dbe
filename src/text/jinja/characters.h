// Characters of UTF-8 text that is known to be valid, by the rules of Python's str: what is white space, what ends a
// line, and the other case of a letter (Unicode's full mappings but for the final sigma's context).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transept::jinja {

// Bytes of the character that starts with this one.
inline size_t character_bytes(char lead) {
  const auto c = static_cast<unsigned char>(lead);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}
char32_t character_at(std::string_view text, size_t at);
void append_character(std::string& out, char32_t c);
size_t count_characters(std::string_view text);
std::vector<std::string_view> characters_of(std::string_view text);

bool is_space(char32_t c);
bool is_printable(char32_t c);
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
inline std::string_view strip(std::string_view text) { return strip_left(strip_right(text)); }
// Of any of these characters.
std::string_view strip_left(std::string_view text, std::string_view characters);
std::string_view strip_right(std::string_view text, std::string_view characters);
std::vector<std::string_view> split_lines(std::string_view text);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);  // str.capitalize
std::string title(std::string_view text);       // str.title
bool is_upper_text(std::string_view text);      // str.isupper
bool is_lower_text(std::string_view text);      // str.islower

// The first place at or behind `from`; npos: none. In time linear in both, whatever they hold.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);

}  // namespace transept::jinja
