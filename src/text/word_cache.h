// Words that a model has cut before, and their tokens: most words of a text come again. Bounded in bytes; a full cache
// is emptied. What it gives is what the model gave, so that results do not depend on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_model.h"

namespace transept {

class WordCache : public ModelScratch {
 public:
  static constexpr size_t kLongestWord = 256;  // longer ones hardly come again

  // The word's tokens; false where it is not known.
  bool find(std::string_view word, std::vector<TokenSpan>& tokens) const;
  void insert(std::string_view word, std::span<const TokenSpan> tokens);

 private:
  static constexpr size_t kSlots = size_t{1} << 16, kMostBytes = size_t{1} << 20, kMostTokens = size_t{1} << 18;
  struct Entry {
    uint64_t hash = 0;
    uint32_t word = 0, length = 0, first_token = 0, tokens = 0;  // length 0: free
  };

  std::vector<Entry> slots_;  // made with the first word
  size_t taken_ = 0;
  std::string words_;
  std::vector<TokenSpan> tokens_;
};

}  // namespace transept
