#include "text/word_cache.h"

#include "text/byte_hash.h"

namespace transept {

bool WordCache::find(std::string_view word, std::vector<TokenSpan>& tokens) const {
  if (slots_.empty() || word.size() > kLongestWord) return false;
  const uint64_t hash = hash_bytes(word);
  for (size_t at = hash % kSlots; slots_[at].length != 0; at = (at + 1) % kSlots) {
    const Entry& entry = slots_[at];
    if (entry.hash != hash || std::string_view(words_).substr(entry.word, entry.length) != word) continue;
    const auto first = tokens_.begin() + entry.first_token;
    tokens.insert(tokens.end(), first, first + entry.tokens);
    return true;
  }
  return false;
}

void WordCache::insert(std::string_view word, std::span<const TokenSpan> tokens) {
  if (word.empty() || word.size() > kLongestWord) return;
  if (slots_.empty() || 2 * (taken_ + 1) > kSlots || words_.size() + word.size() > kMostBytes ||
      tokens_.size() + tokens.size() > kMostTokens) {
    slots_.assign(kSlots, {});
    taken_ = 0;
    words_.clear();
    tokens_.clear();
  }
  const uint64_t hash = hash_bytes(word);
  size_t at = hash % kSlots;
  while (slots_[at].length != 0) at = (at + 1) % kSlots;
  slots_[at] = {hash, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(word.size()),
                static_cast<uint32_t>(tokens_.size()), static_cast<uint32_t>(tokens.size())};
  ++taken_;
  words_ += word;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

}  // namespace transept
