#include "text/word_level_model.h"

#include "base/problem.h"
#include "text/piece_index.h"

namespace transept {
namespace {

class WordLevelModel : public TokenModel {
 public:
  explicit WordLevelModel(const WordLevelFile& file) : index_(file.vocabulary.size()) {
    for (const auto& [piece, id] : file.vocabulary) {
      if (piece == file.unknown) unknown_ = id;
      if (!file.never.contains(id)) index_.insert(piece, id);
    }
  }

  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<ModelScratch>(); }

  void encode(std::string_view word, ModelScratch&, std::vector<TokenSpan>& tokens) const override {
    std::optional<int32_t> id = index_.find(word);
    if (!id) id = unknown_;
    if (!id) {
      throw InputError("\"" + std::string(word.substr(0, 100)) + "\"",
                       "is not in the vocabulary, which has no unknown token either", "leave it out of the text");
    }
    tokens.push_back({*id, 0, static_cast<uint32_t>(word.size())});
  }

 private:
  PieceIndex index_;
  std::optional<int32_t> unknown_;
};

}  // namespace

std::unique_ptr<TokenModel> word_level_model(const WordLevelFile& file) {
  return std::make_unique<WordLevelModel>(file);
}

}  // namespace transept
