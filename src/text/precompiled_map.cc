#include "text/precompiled_map.h"

#include <bit>
#include <cstring>

#include "base/problem.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace transept {

static_assert(std::endian::native == std::endian::little, "the map is little-endian");

PrecompiledMap::PrecompiledMap(std::string_view bytes, const std::string& where) {
  if (bytes.empty()) return;
  const auto damaged = [&] { throw InputError(where, "has a damaged table of normalization rules", "get it again"); };
  uint32_t trie_bytes = 0;
  if (bytes.size() < 4) damaged();
  std::memcpy(&trie_bytes, bytes.data(), 4);
  bytes.remove_prefix(4);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes >= bytes.size()) damaged();
  trie_.resize(trie_bytes / 4);
  std::memcpy(trie_.data(), bytes.data(), trie_bytes);
  replacements_ = bytes.substr(trie_bytes);
  if (replacements_.back() != '\0' || !is_utf8(replacements_)) damaged();
}

std::optional<PrecompiledMap::Hit> PrecompiledMap::longest(std::string_view text) const {
  if (trie_.empty()) return std::nullopt;
  const auto offset = [](uint32_t unit) { return size_t{unit >> 10} << ((unit & (1u << 9)) >> 6); };
  std::optional<Hit> best;
  size_t node = offset(trie_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= trie_.size()) break;
    const uint32_t unit = trie_[node];
    if ((unit & (1u << 31 | 0xFF)) != byte) break;
    node ^= offset(unit);
    if (node >= trie_.size()) break;
    if ((unit >> 8 & 1) == 0) continue;
    const size_t begin = trie_[node] & 0x7FFFFFFF;
    // A replacement begins where a character does, and a rule ends where one does.
    const auto inside = [](std::string_view s, size_t at) { return at < s.size() && is_continuation(s[at]); };
    if (begin >= replacements_.size() || inside(replacements_, begin) || inside(text, i + 1)) continue;
    best = Hit{i + 1, std::string_view(replacements_.c_str() + begin)};
  }
  return best;
}

}  // namespace transept
