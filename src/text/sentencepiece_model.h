// The file of a sentencepiece model (Kudo and Richardson, 2018, arXiv 1808.06226; sentencepiece_model.proto of its
// source), which is a protocol-buffer message: what Transept uses of it, checked.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

struct SentencepieceModel {
  enum class Type { kUnigram = 1, kBpe = 2 };
  enum class PieceType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  Type type = Type::kUnigram;
  std::vector<Piece> pieces;      // each text once
  bool byte_fallback = false;     // then every byte has a piece
  std::vector<int32_t> byte_ids;  // of the 256 bytes; empty without byte fallback
  bool dummy_prefix = true, remove_extra_spaces = true;
  std::string charsmap;  // rules of normalization, as they came; empty: none
  std::string unknown_surface = " \xE2\x81\x87 ";
  int32_t unknown = 0;
  std::optional<int32_t> bos, eos, pad;  // control pieces

  // Whether nothing of a text is lost: no normalization, all spaces kept, bytes for what is no piece.
  bool lossless() const { return byte_fallback && !dummy_prefix && !remove_extra_spaces && charsmap.empty(); }
};

inline constexpr uint64_t kMostModelBytes = uint64_t{64} << 20;

// InputError naming `where` for what is damaged, contradicts itself, or is not supported (models of words or
// characters, spaces written otherwise than as U+2581 in front of words, rules for the way back).
SentencepieceModel parse_sentencepiece(std::string_view bytes, const std::string& where);

}  // namespace transept
