// Characters: reading and writing them in valid UTF-8, and what kind they are. The tables are generated
// (tools/make_unicode_tables.py), each of the Unicode version that the same question has in Hugging Face tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode_tables.h"

namespace transept {

// Sets of characters; a character's traits are the union of those it is in.
enum Trait : uint32_t {
  // Unicode 16, as regular expressions name them.
  kLetter = 1 << 0,       // \p{L}
  kUpperLike = 1 << 1,    // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  kLowerLike = 1 << 2,    // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  kMark = 1 << 3,         // \p{M}
  kNumber = 1 << 4,       // \p{N}
  kPunctuation = 1 << 5,  // \p{P}
  kSymbol = 1 << 6,       // \p{S}
  kSpace = 1 << 7,        // \s: White_Space
  kWord = 1 << 8,         // \w: alphabetic, marks, decimal digits, connector punctuation, joiners
  kNewline = 1 << 9,      // [\r\n]
  // Of the versions that the named step of Hugging Face tokenizers has.
  kNumeric = 1 << 10,          // Digits: N of Unicode 17
  kBertPunctuation = 1 << 11,  // BertPreTokenizer, Punctuation: P of Unicode 8, and ASCII's symbols
  kNonspacing = 1 << 12,       // BertNormalizer's accents: Mn of Unicode 8
  kControl = 1 << 13,          // BertNormalizer's clean_text: Cc, Cf, Co of Unicode 8 but tab, line feed, return
  kAccent = 1 << 14,           // StripAccents: M of Unicode 9
};

inline uint32_t traits(uint32_t point) {
  using namespace unicode_tables;
  return point < 128 ? kAsciiTraits[point] : kTraitsOfKind[look_up(kTraitsBlocks, kTraitsValues, point)];
}

// Simple lower case of Unicode 17. U+0130, whose lower case is "i" and U+0307, stays itself.
inline uint32_t lower_case(uint32_t point) {
  using namespace unicode_tables;
  return point + static_cast<uint32_t>(kLowerDeltas[look_up(kLowerBlocks, kLowerValues, point)]);
}

struct Character {
  uint32_t point;
  uint32_t length;  // in bytes
};

// The character at the beginning of valid UTF-8; `at` points to one.
inline Character read_character(const char* at) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}
inline Character character_at(std::string_view text, size_t at) { return read_character(text.data() + at); }

// The byte is not the first of a character.
inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Where the character that ends at `end` (not 0) begins.
inline size_t character_before(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && is_continuation(text[end]));
  return end;
}

// A code point as UTF-8, at most four bytes, in place.
class Utf8Character {
 public:
  explicit Utf8Character(uint32_t point) {
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) {
      bytes_[size_++] = static_cast<char>(point);
    } else if (point < 0x800) {
      bytes_[size_++] = static_cast<char>(0xC0 | point >> 6);
      bytes_[size_++] = tail(0);
    } else if (point < 0x10000) {
      bytes_[size_++] = static_cast<char>(0xE0 | point >> 12);
      bytes_[size_++] = tail(6);
      bytes_[size_++] = tail(0);
    } else {
      bytes_[size_++] = static_cast<char>(0xF0 | point >> 18);
      bytes_[size_++] = tail(12);
      bytes_[size_++] = tail(6);
      bytes_[size_++] = tail(0);
    }
  }
  std::string_view view() const { return {bytes_, size_}; }

 private:
  char bytes_[4] = {};
  size_t size_ = 0;
};

}  // namespace transept
