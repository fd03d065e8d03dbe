// Byte-pair encoding, in the two ways in which files have it:
//  - BpeModel: the model "BPE" of Hugging Face's tokenizer.json. Characters (or bytes) that the vocabulary lacks become
//    byte tokens or the unknown token first, then merges follow, each with the rank of its line.
//  - sentencepiece's (Kudo and Richardson, 2018, arXiv 1808.06226; bpe_model.cc of its source): neighbours merge
//    whenever together they are a piece, the best score first; what is no piece in the end becomes byte tokens or the
//    unknown token.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "text/token_model.h"

namespace transept {

struct BpeFile {
  PieceList vocabulary = {};                                     // each piece and each id once
  std::vector<std::pair<std::string, std::string>> merges = {};  // by rank
  bool raw_bytes = false;  // pieces are bytes (a byte-level vocabulary): a word's symbols are its bytes, not characters
  bool byte_fallback = false;  // what the vocabulary lacks becomes "<0x0A>" tokens, where it has all of them
  bool fuse_unknown = false;   // neighbouring unknown tokens become one
  bool whole_words = false;    // ignore_merges: a word that is a piece is that token, whatever merges say
  std::optional<std::string> unknown = {};
  std::string continuing_prefix = {}, word_suffix = {};
  std::set<int32_t> never = {};  // ids that no text becomes: special tokens
};
// Null when a problem was added: merges of pieces that do not exist, an unknown token that is no piece. `where` is the
// path of the model's block.
std::unique_ptr<TokenModel> bpe_model(const BpeFile& file, const std::string& where, Problems& problems);

struct ScoredPiece {
  std::string text;
  float score = 0;
  bool user_defined = false;  // taken out of the text before anything merges, the longest first
};
struct ScoredBpeFile {
  std::vector<std::optional<ScoredPiece>> pieces = {};  // by id; null: no text becomes this id by merging
  std::vector<int32_t> bytes = {};                      // the ids of the 256 byte pieces, or empty: no byte fallback
  int32_t unknown = 0;
};
std::unique_ptr<TokenModel> scored_bpe_model(const ScoredBpeFile& file);

}  // namespace transept
