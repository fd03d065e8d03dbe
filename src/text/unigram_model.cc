#include "text/unigram_model.h"

#include <algorithm>

#include "base/check.h"
#include "text/piece_trie.h"
#include "text/utf8.h"
#include "text/word_cache.h"

namespace transept {
namespace {

template <class Sum>
class UnigramModel : public TokenModel {
 public:
  explicit UnigramModel(const UnigramFile& file)
      : unknown_(file.unknown), bytes_(file.bytes), unknown_score_(static_cast<Sum>(file.unknown_score)) {
    scores_.reserve(file.pieces.size());
    for (size_t id = 0; id < file.pieces.size(); ++id) {
      const UnigramPiece& piece = file.pieces[id];
      scores_.push_back(static_cast<Sum>(piece.score));
      if (piece.reached && !piece.text.empty()) trie_.insert(piece.text, static_cast<int32_t>(id));
    }
  }

  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<Scratch>(); }

  void encode(std::string_view word, ModelScratch& scratch_of_any, std::vector<TokenSpan>& tokens) const override {
    auto& scratch = static_cast<Scratch&>(scratch_of_any);
    const size_t first = tokens.size();
    if (scratch.find(word, tokens)) return;
    search(word, scratch.ends);
    collect(word, scratch.ends, tokens);
    scratch.insert(word, std::span(tokens).subspan(first));
  }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  // The best way to cut the word up to a byte: its sum, and where its last token begins.
  struct Node {
    Sum sum = 0;
    uint32_t begin = kNowhere;
    int32_t id = 0;
  };
  struct Scratch : WordCache {
    std::vector<Node> ends;
  };

  void search(std::string_view word, std::vector<Node>& ends) const {
    ends.assign(word.size() + 1, Node{});
    for (size_t begin = 0; begin < word.size();) {
      const Sum sum_here = ends[begin].sum;
      const auto offer = [&](size_t end, Sum sum, int32_t id) {
        Node& node = ends[end];
        if (node.begin != kNowhere && !(sum > node.sum)) return;
        node = {sum, static_cast<uint32_t>(begin), id};
      };
      const size_t character = std::min(character_bytes(word[begin]), word.size() - begin);
      bool stands_alone = false;
      trie_.prefixes(word.substr(begin), [&](size_t length, int32_t id) {
        offer(begin + length, scores_[static_cast<size_t>(id)] + sum_here, id);
        stands_alone = stands_alone || length == character;
      });
      if (!stands_alone) {
        if (!unknown_) {
          throw InputError("\"" + std::string(word.substr(begin, character)) + "\"",
                           "is not in the vocabulary, which has no unknown token either", "leave it out of the text");
        }
        offer(begin + character, unknown_score_ + sum_here, *unknown_);
      }
      begin += character;
    }
  }

  void collect(std::string_view word, const std::vector<Node>& ends, std::vector<TokenSpan>& tokens) const {
    const size_t first = tokens.size();
    for (size_t end = word.size(); end > 0;) {  // from the last token to the first
      size_t begin = ends[end].begin;
      const int32_t id = ends[end].id;
      if (id != unknown_) {
        tokens.push_back({id, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
        end = begin;
        continue;
      }
      while (begin > 0 && ends[begin].id == unknown_) begin = ends[begin].begin;  // neighbours are one
      add_unknown(word, begin, end, tokens);
      end = begin;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  }

  // Backwards, as `collect` goes.
  void add_unknown(std::string_view word, size_t begin, size_t end, std::vector<TokenSpan>& tokens) const {
    const std::string_view text = word.substr(begin, end - begin);
    const auto span = [&](int32_t id) {
      tokens.push_back({id, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    };
    // Where scores are positive two unknown characters may cost less than the piece that they are.
    if (const auto [length, id] = trie_.longest(text); length == text.size()) return span(id);
    const auto has_byte = [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; };
    if (bytes_.empty() || !std::all_of(text.begin(), text.end(), has_byte)) return span(*unknown_);
    for (size_t i = text.size(); i-- > 0;) span(bytes_[static_cast<unsigned char>(text[i])]);
  }

  std::optional<int32_t> unknown_;
  std::vector<int32_t> bytes_;
  Sum unknown_score_;
  std::vector<Sum> scores_;
  PieceTrie trie_;
};

}  // namespace

std::unique_ptr<TokenModel> unigram_model(const UnigramFile& file) {
  TRANSEPT_CHECK(file.bytes.empty() || file.bytes.size() == 256);
  if (file.single_precision) return std::make_unique<UnigramModel<float>>(file);
  return std::make_unique<UnigramModel<double>>(file);
}

}  // namespace transept
