#include "text/added_tokens.h"

#include <set>

#include "text/json_block.h"
#include "text/tokenizer_file.h"
#include "text/unicode.h"

namespace transept {
namespace {

bool is(std::string_view text, size_t at, Trait trait) { return (traits(character_at(text, at).point) & trait) != 0; }

// Where white space at the end of the text begins.
size_t space_at_end(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t begin = character_before(text, end);
    if (!is(text, begin, kSpace)) break;
    end = begin;
  }
  return end;
}
size_t space_at_start(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is(text, end, kSpace)) end += character_at(text, end).length;
  return end;
}
bool word_at_end(std::string_view text) {
  return !text.empty() && is(text, character_before(text, text.size()), kWord);
}
bool word_at_start(std::string_view text) { return !text.empty() && is(text, 0, kWord); }

}  // namespace

std::vector<AddedToken> read_added_tokens(const Json& block, const std::string& where, Problems& problems) {
  std::vector<AddedToken> tokens;
  if (block.is_null()) return tokens;
  if (!block.is_array()) {
    problems.push_back({where, "is no list", ""});
    return tokens;
  }
  std::set<int32_t> ids;
  std::set<std::string> contents;
  for (size_t i = 0; i < block.size(); ++i) {
    const JsonBlock entry(block[i], where + "[" + std::to_string(i) + "]", problems);
    if (!block[i].is_object()) continue;
    AddedToken token;
    const Json* id_value = entry.find("id");
    const std::optional<uint64_t> id = id_value == nullptr ? std::nullopt : count_of(*id_value);
    if (!id || *id > static_cast<uint64_t>(kMostTokenId)) {
      entry.add("id", "is no id from 0 to " + std::to_string(kMostTokenId));
      continue;
    }
    token.id = static_cast<int32_t>(*id);
    const std::optional<std::string> content = entry.text("content");
    if (!content) {
      if (entry.find("content") == nullptr) entry.add("content", "is absent");
      continue;
    }
    token.content = *content;
    token.special = entry.boolean("special", false);
    token.single_word = entry.boolean("single_word", false);
    token.lstrip = entry.boolean("lstrip", false);
    token.rstrip = entry.boolean("rstrip", false);
    token.normalized = entry.boolean("normalized", !token.special);
    if (token.content.empty()) continue;  // it would match everywhere; Hugging Face's library leaves it out as well
    if (!ids.insert(token.id).second) entry.add("id", "is that of another added token");
    if (!contents.insert(token.content).second) entry.add("content", "is that of another added token");
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.content.empty()) continue;
    if (!token.normalized) {
      plain_.insert(token.content, static_cast<int32_t>(i));
      any_plain_ = true;
      continue;
    }
    AlignedText content(token.content);
    if (normalizer != nullptr) normalizer->apply(content);
    if (content.empty()) continue;
    normalized_.insert(content.bytes(), static_cast<int32_t>(i));
    any_normalized_ = true;
  }
}

void AddedTokens::split_at(const PieceTrie& trie, const AlignedText& text, bool read_specials,
                           std::vector<TextStretch>& out) const {
  const std::string_view bytes = text.bytes();
  const auto add = [&](size_t begin, size_t end, int32_t id) {
    if (begin < end) out.push_back({text.part(begin, end), id});
  };
  size_t done = 0;
  for (size_t at = 0; at < bytes.size();) {
    if (!trie.starts(static_cast<unsigned char>(bytes[at]))) {
      ++at;
      continue;
    }
    const auto [length, index] = trie.longest(bytes.substr(at));
    if (length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    size_t begin = at, end = at + length;
    at = end;
    if (token.special && !read_specials) continue;
    if (token.single_word && (word_at_end(bytes.substr(0, begin)) || word_at_start(bytes.substr(end)))) continue;
    if (begin < done) continue;  // the space that this one begins with belongs to the one before it
    if (token.lstrip) begin = std::max(space_at_end(bytes.substr(0, begin)), done);
    if (token.rstrip) end += space_at_start(bytes.substr(end));
    add(done, begin, -1);
    add(begin, end, token.id);
    done = end;
  }
  add(done, bytes.size(), -1);
}

std::vector<TextStretch> AddedTokens::split(std::string_view text, const Normalizer* normalizer,
                                            bool read_specials) const {
  std::vector<TextStretch> stretches;
  const AlignedText whole(text);
  if (any_plain_) {
    split_at(plain_, whole, read_specials, stretches);
  } else if (!text.empty()) {
    stretches.push_back({whole, -1});
  }
  if (normalizer == nullptr && !any_normalized_) return stretches;
  std::vector<TextStretch> out;
  for (TextStretch& stretch : stretches) {
    if (stretch.id < 0) {
      if (normalizer != nullptr) normalizer->apply(stretch.text);
      if (any_normalized_) {
        split_at(normalized_, stretch.text, read_specials, out);
        continue;
      }
    }
    if (!stretch.text.empty()) out.push_back(std::move(stretch));
  }
  return out;
}

}  // namespace transept
