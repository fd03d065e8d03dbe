// A text whose ill-formed parts are U+FFFD, and where in the text as it came each of its bytes was.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/utf8.h"

namespace transept {

class RepairedText {
 public:
  // `text` must outlive this. Nothing is copied where it is valid.
  explicit RepairedText(std::string_view text) : text_(text) {
    if (is_utf8(text)) return;
    for (size_t at = 0; at < text.size();) {
      const Utf8Part part = utf8_part(text.substr(at));
      if (part.valid) {
        repaired_ += text.substr(at, part.length);
      } else {
        repaired_ += "\xEF\xBF\xBD";
        ends_.emplace_back(repaired_.size(), at + part.length);
      }
      at += part.length;
    }
    text_ = repaired_;
  }
  RepairedText(const RepairedText&) = delete;
  RepairedText& operator=(const RepairedText&) = delete;

  std::string_view text() const { return text_; }
  // The place in the text as it came of a border of characters.
  size_t source(size_t at) const {
    const auto next = std::upper_bound(ends_.begin(), ends_.end(), at,
                                       [](size_t place, const auto& end) { return place < end.first; });
    return next == ends_.begin() ? at : std::prev(next)->second + (at - std::prev(next)->first);
  }

 private:
  std::string_view text_;
  std::string repaired_;
  std::vector<std::pair<size_t, size_t>> ends_;  // of each repaired part: here, and in the text as it came
};

}  // namespace transept
