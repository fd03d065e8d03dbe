// Where a character as people see it ends: extended grapheme clusters (UAX 29, Unicode 16), but for rule GB9c, which
// only joins clusters that are longer than anything its caller tells apart.
#pragma once

#include <cstddef>
#include <string_view>

namespace transept {

// The end of the cluster that begins at `at` < text.size(); valid UTF-8.
size_t grapheme_end(std::string_view text, size_t at);

}  // namespace transept
