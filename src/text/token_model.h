// The part of a tokenizer that cuts a word into tokens of its vocabulary: byte-pair encoding (bpe_model.h), Unigram
// (unigram_model.h), WordPiece (word_piece_model.h), WordLevel (word_level_model.h). Each gives the ids and offsets of
// Hugging Face's Python package tokenizers 0.23.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {

// A token and the bytes [begin, end) of the word that it stands for. The byte tokens of one character may share its
// whole range.
struct TokenSpan {
  int32_t id;
  uint32_t begin, end;
  bool operator==(const TokenSpan&) const = default;
};

// What one thread keeps between the words of a text; a model makes its own kind.
class ModelScratch {
 public:
  virtual ~ModelScratch() = default;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Words of earlier calls may be remembered in it, a bounded number. One thread at a time.
  virtual std::unique_ptr<ModelScratch> make_scratch() const = 0;

  // Appends the tokens of a word, which is valid UTF-8 of fewer than 2^32 bytes, or any bytes where the vocabulary is
  // one of bytes. `scratch` comes from this model. InputError where the vocabulary has no token for what stands there,
  // and no unknown token either.
  virtual void encode(std::string_view word, ModelScratch& scratch, std::vector<TokenSpan>& tokens) const = 0;
};

// Pieces and their ids, in the order of a file.
using PieceList = std::vector<std::pair<std::string, int32_t>>;

}  // namespace transept
