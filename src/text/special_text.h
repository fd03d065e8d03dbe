// Splits a text at the special tokens written inside it; the longest one that fits at the leftmost place wins.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace transept {

class SpecialText {
 public:
  SpecialText() = default;
  explicit SpecialText(std::vector<std::pair<std::string, int32_t>> specials) : specials_(std::move(specials)) {
    std::erase_if(specials_, [](const auto& s) { return s.first.empty(); });
    std::sort(specials_.begin(), specials_.end(), [](const auto& a, const auto& b) {
      return a.first.size() != b.first.size() ? a.first.size() > b.first.size() : a < b;
    });
    for (const auto& [text, id] : specials_) starts_[static_cast<unsigned char>(text[0])] = true;
  }

  // Calls plain(part) for each non-empty stretch between specials, and special(id, its place) for each of them, in
  // order.
  template <class Plain, class Special>
  void split(std::string_view text, const Plain& plain, const Special& special) const {
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const auto fits = [&](const auto& s) { return text.substr(at, s.first.size()) == s.first; };
      const auto hit = starts_[static_cast<unsigned char>(text[at])]
                           ? std::find_if(specials_.begin(), specials_.end(), fits)
                           : specials_.end();
      if (hit == specials_.end()) {
        ++at;
        continue;
      }
      if (at > begin) plain(text.substr(begin, at - begin));
      special(hit->second, ByteRange{at, at + hit->first.size()});
      begin = at += hit->first.size();
    }
    if (begin < text.size()) plain(text.substr(begin));
  }

 private:
  std::vector<std::pair<std::string, int32_t>> specials_;
  std::array<bool, 256> starts_{};
};

}  // namespace transept
