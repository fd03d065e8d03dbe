// WordLevel: each word is a piece, or unknown.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "text/token_model.h"

namespace transept {

struct WordLevelFile {
  PieceList vocabulary = {};
  std::string unknown = "<unk>";  // where it is no piece, texts with unknown words are refused
  std::set<int32_t> never = {};   // ids that no text becomes: special tokens
};
std::unique_ptr<TokenModel> word_level_model(const WordLevelFile& file);

}  // namespace transept
