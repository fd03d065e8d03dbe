// WordPiece (Schuster and Nakajima, 2012; as BERT has it, Devlin et al., 2018, arXiv 1810.04805, tokenization.py): from
// its beginning on, a word is cut into the longest pieces there are. A word with a part of no piece is unknown as a
// whole, and so is one that is too long.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/problem.h"
#include "text/token_model.h"

namespace transept {

struct WordPieceFile {
  PieceList vocabulary = {};
  std::string unknown = "[UNK]";
  std::string continuing_prefix = "##";  // of pieces that do not begin a word
  uint64_t most_characters = 100;        // of a word that is not unknown
  std::set<int32_t> never = {};          // ids that no text becomes: special tokens
};
// Null when a problem was added: the unknown token is no piece.
std::unique_ptr<TokenModel> word_piece_model(const WordPieceFile& file, const std::string& where, Problems& problems);

}  // namespace transept
