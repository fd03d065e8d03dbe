#include "infer/answer_text.h"

#include <algorithm>
#include <utility>

namespace transept {

std::string AnswerText::add(std::string_view text) {
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : *stops_) {
    if (!stop.empty()) first = std::min(first, held_.find(stop));
  }
  if (first != std::string::npos) {
    stopped_ = true;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  size_t keep = 0;
  for (const std::string& stop : *stops_) {
    for (size_t n = std::min(stop.size() - (stop.empty() ? 0 : 1), held_.size()); n > keep; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return out;
}

std::string AnswerText::finish() {
  if (stopped_) return {};
  std::string out = add(stream_.finish());
  if (!stopped_) out += std::exchange(held_, {});
  return out;
}

}  // namespace transept
