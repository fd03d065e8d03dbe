// UTF-8 as Unicode 15, table 3-7 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace transept {

// What stands at the start of `text` (not empty): `length` bytes that are a character when `valid`, else a maximal
// ill-formed part. `cut` when these bytes are the beginning of a character whose rest lies beyond the end of `text`.
struct Utf8Part {
  size_t length = 1;
  bool valid = false;
  bool cut = false;
};
Utf8Part utf8_part(std::string_view text);

bool is_utf8(std::string_view text);

// The length of the character that begins with this byte; 1 for a byte that begins none.
inline size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Each maximal ill-formed part becomes U+FFFD (Unicode 15, section 3.9, "U+FFFD substitution of maximal subparts").
std::string repair_utf8(std::string_view text);

}  // namespace transept
