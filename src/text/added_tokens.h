// Added tokens of a tokenizer.json: strings that are taken out of a text before anything else looks at it. Those with
// "normalized" are looked for in the normalized text, by their own normalized form. Of several that match at the
// leftmost place the longest is taken (Hugging Face tokenizers, added_vocabulary.rs).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "text/aligned_text.h"
#include "text/normalizer.h"
#include "text/piece_trie.h"

namespace transept {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;             // only where no letter or digit stands beside it
  bool lstrip = false, rstrip = false;  // white space beside it belongs to it
  bool normalized = false;
  bool special = false;  // gives nothing when decoded; may be left unread
};

// The block "added_tokens"; each id and each content once.
std::vector<AddedToken> read_added_tokens(const Json& block, const std::string& where, Problems& problems);

// A stretch of a text: an added token, or (id negative) text between them.
struct TextStretch {
  AlignedText text;
  int32_t id = -1;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // `normalizer` may be null; it need not outlive this.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  // Splits the text (valid UTF-8), and normalizes what lies between the tokens. `read_specials`: else special ones are
  // text. `starts_at`: where in the whole text it begins.
  std::vector<TextStretch> split(std::string_view text, const Normalizer* normalizer, bool read_specials) const;

  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  void split_at(const PieceTrie& trie, const AlignedText& text, bool read_specials,
                std::vector<TextStretch>& out) const;

  std::vector<AddedToken> tokens_;
  PieceTrie plain_, normalized_;  // values are indices of tokens_
  bool any_plain_ = false, any_normalized_ = false;
};

}  // namespace transept
