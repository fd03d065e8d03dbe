#include "text/bpe_model.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"
#include "text/bpe_merges.h"
#include "text/byte_piece.h"
#include "text/piece_index.h"
#include "text/piece_trie.h"
#include "text/space_mark.h"
#include "text/utf8.h"
#include "text/word_cache.h"

namespace transept {
namespace {

struct BpeScratch : WordCache {
  std::vector<BpeMerges::Symbol> symbols;
  BpeMerges::Scratch merges;
  std::string piece;
};

void append_spans(const std::vector<BpeMerges::Symbol>& symbols, uint32_t begin, std::vector<TokenSpan>& tokens) {
  for (const BpeMerges::Symbol& s : symbols) {
    tokens.push_back({s.id, begin, begin + s.bytes});
    begin += s.bytes;
  }
}

// Cuts the word before each mark behind another character where `cut`, and looks each part up before `make` makes it:
// make(part) leaves its tokens in scratch.symbols.
template <class Make>
void encode_parts(std::string_view word, bool cut, BpeScratch& scratch, std::vector<TokenSpan>& tokens,
                  const Make& make) {
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = cut ? next_word(word, begin + 1) : word.size();
    const std::string_view part = word.substr(begin, end - begin);
    const size_t first = tokens.size();
    if (!scratch.find(part, tokens)) {
      make(part);
      append_spans(scratch.symbols, 0, tokens);
      scratch.insert(part, std::span(tokens).subspan(first));
    }
    if (begin > 0) {
      for (size_t i = first; i < tokens.size(); ++i) {
        tokens[i].begin += static_cast<uint32_t>(begin);
        tokens[i].end += static_cast<uint32_t>(begin);
      }
    }
    begin = end;
  }
}

class BpeModel : public TokenModel {
 public:
  BpeModel(const BpeFile& file, const std::string& where, Problems& problems)
      : raw_bytes_(file.raw_bytes),
        byte_fallback_(file.byte_fallback),
        fuse_unknown_(file.fuse_unknown),
        whole_words_(file.whole_words),
        prefix_(file.continuing_prefix),
        suffix_(file.word_suffix),
        index_(file.vocabulary.size()),
        merges_(file.merges.size()) {
    for (const auto& [piece, id] : file.vocabulary) index_.insert(piece, id);
    never_ = file.never;
    for (size_t byte = 0; byte < 256; ++byte) {
      single_[byte] = index_.find(std::string(1, static_cast<char>(byte))).value_or(-1);
      bytes_[byte] = index_.find(byte_piece(static_cast<uint8_t>(byte))).value_or(-1);
    }
    if (file.unknown) {
      unknown_ = index_.find(*file.unknown);
      if (!unknown_) {
        problems.push_back({where + ".unk_token", "\"" + *file.unknown + "\" is not in the vocabulary",
                            "name one of its pieces, or null"});
      }
    }
    // A part in front of a space mark is on its own when no merge reaches over the mark, and nothing else does.
    cut_at_words_ = !raw_bytes_ && !whole_words_ && prefix_.empty() && suffix_.empty() && index_.find(kSpaceMark);
    for (size_t rank = 0; rank < file.merges.size(); ++rank) {
      const auto& [left, right] = file.merges[rank];
      const std::string at = where + ".merges[" + std::to_string(rank) + "]";
      if (right.size() < prefix_.size()) {
        problems.push_back({at, "its second part is shorter than continuing_subword_prefix", ""});
        return;
      }
      const std::string together = left + right.substr(prefix_.size());
      const auto left_id = index_.find(left), right_id = index_.find(right), id = index_.find(together);
      if (!left_id || !right_id || !id) {
        problems.push_back({at, "joins pieces that are not in the vocabulary, or to one that is not", ""});
        return;  // the other merges would say the same
      }
      merges_.insert(*left_id, *right_id, static_cast<uint32_t>(rank), *id);
      cut_at_words_ = cut_at_words_ && stands_in_one_word(together);
    }
  }

  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<BpeScratch>(); }

  void encode(std::string_view word, ModelScratch& scratch_of_any, std::vector<TokenSpan>& tokens) const override {
    auto& scratch = static_cast<BpeScratch&>(scratch_of_any);
    encode_parts(word, cut_at_words_, scratch, tokens, [&](std::string_view part) { make(part, scratch); });
  }

 private:
  void make(std::string_view word, BpeScratch& scratch) const {
    scratch.symbols.clear();
    if (whole_words_) {
      if (const auto id = index_.find(word); id && !never_.contains(*id)) {
        scratch.symbols.push_back({*id, static_cast<uint32_t>(word.size())});
        return;
      }
    }
    split(word, scratch);
    merges_.apply(scratch.symbols, scratch.merges);
  }

  // The characters, or bytes, as symbols. What the vocabulary lacks, and has no byte tokens for, is left out where
  // there is no unknown token either.
  void split(std::string_view word, BpeScratch& scratch) const {
    std::vector<BpeMerges::Symbol>& symbols = scratch.symbols;
    uint32_t unknown_bytes = 0;  // of the unknown token that still waits for its neighbours
    const auto flush = [&] {
      if (unknown_bytes > 0) symbols.push_back({*unknown_, unknown_bytes});
      unknown_bytes = 0;
    };
    const bool plain = prefix_.empty() && suffix_.empty();
    for (size_t at = 0; at < word.size();) {
      const size_t length = raw_bytes_ ? 1 : std::min(character_bytes(word[at]), word.size() - at);
      std::string_view piece = word.substr(at, length);
      std::optional<int32_t> id;
      if (plain) {
        const int32_t single = length == 1 ? single_[static_cast<unsigned char>(piece[0])] : -1;
        if (length > 1) {
          id = index_.find(piece);
        } else if (single >= 0) {
          id = single;
        }
      } else {
        scratch.piece = (at > 0 ? prefix_ : std::string()) + std::string(piece) +
                        (at + length == word.size() ? suffix_ : std::string());
        piece = scratch.piece;
        id = index_.find(piece);
      }
      at += length;
      if (id) {
        flush();
        symbols.push_back({*id, static_cast<uint32_t>(length)});
        continue;
      }
      const auto has_byte = [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; };
      if (byte_fallback_ && std::all_of(piece.begin(), piece.end(), has_byte)) {
        // An unknown token that waits stays behind them, as in Hugging Face's; only a vocabulary with some of the bytes
        // shows it.
        for (const char c : piece) symbols.push_back({bytes_[static_cast<unsigned char>(c)], 1});
      } else if (unknown_) {
        if (!fuse_unknown_) flush();
        unknown_bytes += static_cast<uint32_t>(length);
      }
    }
    flush();
  }

  bool raw_bytes_, byte_fallback_, fuse_unknown_, whole_words_, cut_at_words_ = false;
  std::string prefix_, suffix_;
  PieceIndex index_;
  BpeMerges merges_;
  std::optional<int32_t> unknown_;
  std::set<int32_t> never_;
  std::array<int32_t, 256> single_{}, bytes_{};  // -1: not in the vocabulary
};

class ScoredBpeModel : public TokenModel {
 public:
  explicit ScoredBpeModel(const ScoredBpeFile& file)
      : unknown_(file.unknown), vocab_size_(static_cast<int32_t>(file.pieces.size())), bytes_(file.bytes) {
    std::vector<float> scores;
    for (const auto& piece : file.pieces) {
      if (!piece) continue;
      if (!piece->user_defined) scores.push_back(piece->score);
    }
    // Pieces of one score have one rank: the leftmost merges first.
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    for (size_t id = 0; id < file.pieces.size(); ++id) {
      const auto& piece = file.pieces[id];
      if (!piece) continue;
      if (piece->user_defined) {
        user_defined_.insert(piece->text, static_cast<int32_t>(id));
      } else {
        index_.insert(piece->text, static_cast<int32_t>(id));
      }
      cut_at_words_ = cut_at_words_ && stands_in_one_word(piece->text);
    }
    // Unknown characters are one token with their neighbours, and so may an unknown mark be.
    cut_at_words_ = cut_at_words_ && index_.find(kSpaceMark);
    // Characters merge although they are no pieces themselves: they have ids behind the vocabulary until they have.
    next_symbol_ = vocab_size_;
    for (const auto& piece : file.pieces) {
      if (!piece || piece->user_defined) continue;
      for (size_t at = 0; at < piece->text.size();) {
        const size_t length = character_bytes(piece->text[at]);
        const std::string_view character = std::string_view(piece->text).substr(at, length);
        if (!index_.find(character)) index_.insert(character, next_symbol_++);
        at += length;
      }
    }
    for (size_t id = 0; id < file.pieces.size(); ++id) {
      const auto& piece = file.pieces[id];
      if (!piece || piece->user_defined) continue;
      const auto rank = static_cast<uint32_t>(
          std::lower_bound(scores.begin(), scores.end(), piece->score, std::greater<>()) - scores.begin());
      const std::string_view text = piece->text;
      for (size_t at = character_bytes(text[0]); at < text.size(); at += character_bytes(text[at])) {
        const auto left = index_.find(text.substr(0, at)), right = index_.find(text.substr(at));
        if (left && right) merges_.insert(*left, *right, rank, static_cast<int32_t>(id));
      }
    }
  }

  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<BpeScratch>(); }

  void encode(std::string_view word, ModelScratch& scratch_of_any, std::vector<TokenSpan>& tokens) const override {
    auto& scratch = static_cast<BpeScratch&>(scratch_of_any);
    encode_parts(word, cut_at_words_, scratch, tokens, [&](std::string_view part) { make(part, scratch); });
  }

 private:
  void make(std::string_view word, BpeScratch& scratch) const {
    std::vector<BpeMerges::Symbol>& symbols = scratch.symbols;
    symbols.clear();
    for (size_t at = 0; at < word.size();) {
      auto [length, id] = user_defined_.longest(word.substr(at));
      if (length == 0) {
        length = std::min(character_bytes(word[at]), word.size() - at);
        // Beyond all ids: a character of no piece, which never merges.
        id = index_.find(word.substr(at, length)).value_or(next_symbol_);
      }
      symbols.push_back({id, static_cast<uint32_t>(length)});
      at += length;
    }
    merges_.apply(symbols, scratch.merges);
    // What is no piece becomes bytes, or unknown tokens, of which neighbours are one.
    const auto known = [&](const BpeMerges::Symbol& s) { return s.id < vocab_size_; };
    if (std::all_of(symbols.begin(), symbols.end(), known)) return;
    std::vector<BpeMerges::Symbol> merged;
    merged.swap(symbols);
    bool after_unknown = false;
    size_t at = 0;
    for (const BpeMerges::Symbol& s : merged) {
      if (known(s)) {
        symbols.push_back(s);
      } else if (!bytes_.empty()) {
        for (size_t i = 0; i < s.bytes; ++i) symbols.push_back({bytes_[static_cast<unsigned char>(word[at + i])], 1});
      } else if (after_unknown) {
        symbols.back().bytes += s.bytes;
      } else {
        symbols.push_back({unknown_, s.bytes});
      }
      after_unknown = !known(s) && bytes_.empty();
      at += s.bytes;
    }
  }

  int32_t unknown_, vocab_size_, next_symbol_ = 0;
  std::vector<int32_t> bytes_;
  PieceIndex index_;
  PieceTrie user_defined_;
  BpeMerges merges_;
  bool cut_at_words_ = true;
};

}  // namespace

std::unique_ptr<TokenModel> bpe_model(const BpeFile& file, const std::string& where, Problems& problems) {
  const size_t before = problems.size();
  auto model = std::make_unique<BpeModel>(file, where, problems);
  if (problems.size() > before) return nullptr;
  return model;
}

std::unique_ptr<TokenModel> scored_bpe_model(const ScoredBpeFile& file) {
  TRANSEPT_CHECK(file.bytes.empty() || file.bytes.size() == 256);
  return std::make_unique<ScoredBpeModel>(file);
}

}  // namespace transept
