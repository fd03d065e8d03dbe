#include "text/word_piece_model.h"

#include <algorithm>

#include "text/piece_trie.h"
#include "text/unicode.h"
#include "text/word_cache.h"

namespace transept {
namespace {

class WordPieceModel : public TokenModel {
 public:
  WordPieceModel(const WordPieceFile& file, int32_t unknown)
      : unknown_(unknown), most_characters_(file.most_characters) {
    for (const auto& [piece, id] : file.vocabulary) {
      if (file.never.contains(id) || piece.empty()) continue;
      begins_.insert(piece, id);
      if (piece.starts_with(file.continuing_prefix) && piece.size() > file.continuing_prefix.size())
        continues_.insert(std::string_view(piece).substr(file.continuing_prefix.size()), id);
    }
  }

  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<WordCache>(); }

  void encode(std::string_view word, ModelScratch& scratch, std::vector<TokenSpan>& tokens) const override {
    auto& cache = static_cast<WordCache&>(scratch);
    const size_t first = tokens.size();
    if (word.empty() || cache.find(word, tokens)) return;
    if (!cut(word, tokens)) {
      tokens.resize(first);
      tokens.push_back({unknown_, 0, static_cast<uint32_t>(word.size())});
    }
    cache.insert(word, std::span(tokens).subspan(first));
  }

 private:
  bool cut(std::string_view word, std::vector<TokenSpan>& tokens) const {
    const auto begins_character = [](char c) { return !is_continuation(c); };
    if (static_cast<uint64_t>(std::count_if(word.begin(), word.end(), begins_character)) > most_characters_)
      return false;
    for (size_t at = 0; at < word.size();) {
      const auto [length, id] = (at == 0 ? begins_ : continues_).longest(word.substr(at));
      if (length == 0) return false;
      tokens.push_back({id, static_cast<uint32_t>(at), static_cast<uint32_t>(at + length)});
      at += length;
    }
    return true;
  }

  int32_t unknown_;
  uint64_t most_characters_;
  PieceTrie begins_, continues_;
};

}  // namespace

std::unique_ptr<TokenModel> word_piece_model(const WordPieceFile& file, const std::string& where, Problems& problems) {
  const auto unknown = std::find_if(file.vocabulary.begin(), file.vocabulary.end(),
                                    [&](const auto& entry) { return entry.first == file.unknown; });
  if (unknown == file.vocabulary.end()) {
    problems.push_back({where + ".unk_token", "\"" + file.unknown + "\" is not in the vocabulary", ""});
    return nullptr;
  }
  return std::make_unique<WordPieceModel>(file, unknown->second);
}

}  // namespace transept
