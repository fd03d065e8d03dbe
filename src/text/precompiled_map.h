// The rules of normalization of a sentencepiece model (precompiled_charsmap): a double-array trie (Darts-clone, S.
// Yata) from strings to where their replacements begin in a block of strings that end with NUL. Every index of the file
// is checked when it is followed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

class PrecompiledMap {
 public:
  struct Hit {
    size_t length;  // of the text
    std::string_view replacement;
  };

  PrecompiledMap() = default;
  // No rules where the bytes are empty. InputError naming `where` when they are no such map.
  PrecompiledMap(std::string_view bytes, const std::string& where);

  // The longest rule that the text begins with.
  std::optional<Hit> longest(std::string_view text) const;

 private:
  std::vector<uint32_t> trie_;
  std::string replacements_;  // ends with NUL
};

}  // namespace transept
