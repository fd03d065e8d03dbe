// U+2581, how pieces of sentencepiece vocabularies write a space, and where texts of such pieces may be cut.
#pragma once

#include <string_view>

namespace transept {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// The first mark behind another character, from `from` on; the end of the text where there is none.
inline size_t next_word(std::string_view text, size_t from) {
  for (size_t at = text.find(kSpaceMark, from); at != std::string_view::npos;
       at = text.find(kSpaceMark, at + kSpaceMark.size())) {
    if (at > 0 && !text.substr(0, at).ends_with(kSpaceMark)) return at;
  }
  return text.size();
}
// Whether the piece has none, so that it never reaches over such a place.
inline bool stands_in_one_word(std::string_view piece) { return next_word(piece, 0) == piece.size(); }

}  // namespace transept
