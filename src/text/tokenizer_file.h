// Hugging Face's tokenizer.json as data. The vocabulary and the merges, which are nearly all of it, are read into flat
// lists as they come; the rest is JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/token_model.h"

namespace transept {

struct TokenizerFile {
  Json rest;                                                // without model.vocab and model.merges
  PieceList vocabulary;                                     // {"piece": id}: each piece once
  std::vector<std::pair<std::string, double>> scored;       // [["piece", score]]: by id
  std::vector<std::pair<std::string, std::string>> merges;  // ["a b"] or [["a", "b"]]
  bool has_merges = false;
};

// The largest file that is read, and the largest id that a vocabulary may have: many times those of any known one.
inline constexpr uint64_t kMostTokenizerBytes = uint64_t{64} << 20;
inline constexpr int64_t kMostTokenId = int64_t{1} << 21;

// InputError naming `where`: no JSON, a key that stands twice, nesting beyond 64 levels, pieces, ids or merges of
// another form.
TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& where);
// A vocabulary alone, as in vocab.json.
PieceList parse_vocabulary(std::string_view text, const std::string& where);
// "a b", or nothing with an InputError.
std::pair<std::string, std::string> split_merge(std::string_view line, const std::string& where);

}  // namespace transept
