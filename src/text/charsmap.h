// The precompiled_charsmap of a sentencepiece model (sentencepiece, src/normalizer.cc): a length, a double-array trie
// of UTF-8 keys (darts-clone's layout), and zero-terminated replacements that its values point at. All of it is
// hostile: an index that leads out of the file matches nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace transept {

class Charsmap {
 public:
  // None, and a problem, for what is no charsmap.
  static std::optional<Charsmap> read(std::string_view bytes, const std::string& where, Problems& problems);

  // What stands for the shortest key that `text` begins with (so Hugging Face tokenizers have it); valid UTF-8.
  std::optional<std::string_view> replacement(std::string_view text) const;

  struct Rule {
    size_t length;  // of the key
    std::string_view replacement;
  };
  // The longest key that `text`, valid UTF-8, begins with (so sentencepiece has it).
  std::optional<Rule> longest(std::string_view text) const;

 private:
  // Calls found(rule) for the keys that the text begins with, shortest first, until it returns false.
  template <class Found>
  void for_each_rule(std::string_view text, const Found& found) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace transept
