#include "text/charsmap.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace transept {
namespace {

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

// The fields of a unit (darts-clone, DoubleArrayUnit).
bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

std::optional<Charsmap> Charsmap::read(std::string_view bytes, const std::string& where, Problems& problems) {
  const auto refuse = [&](const char* what) {
    problems.push_back({where, what, ""});
    return std::nullopt;
  };
  if (bytes.size() < 4) return refuse("is shorter than the length at its beginning");
  const size_t length = little_endian(bytes, 0) / 4 * 4;
  bytes.remove_prefix(4);
  if (length == 0) return refuse("holds an empty trie");
  if (length > bytes.size()) return refuse("ends within its trie");
  if (!is_utf8(bytes.substr(length))) return refuse("has replacements that are no UTF-8");
  Charsmap map;
  map.units_.reserve(length / 4);
  for (size_t at = 0; at < length; at += 4) map.units_.push_back(little_endian(bytes, at));
  map.replacements_ = bytes.substr(length);
  return map;
}

template <class Found>
void Charsmap::for_each_rule(std::string_view text, const Found& found) const {
  uint32_t at = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) break;
    const size_t begin = value(units_[at]);
    if (begin > replacements_.size() || (begin < replacements_.size() && is_continuation(replacements_[begin]))) break;
    if (!found({i + 1, std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin)})) break;
  }
}

std::optional<std::string_view> Charsmap::replacement(std::string_view text) const {
  std::optional<std::string_view> shortest;
  for_each_rule(text, [&](const Rule& rule) {
    shortest = rule.replacement;
    return false;
  });
  return shortest;
}

std::optional<Charsmap::Rule> Charsmap::longest(std::string_view text) const {
  std::optional<Rule> best;
  for_each_rule(text, [&](const Rule& rule) {
    // A hostile key may end inside a character.
    if (rule.length == text.size() || !is_continuation(text[rule.length])) best = rule;
    return true;
  });
  return best;
}

}  // namespace transept
