// The text of an answer as its tokens come: whole characters, and nothing from a stop string on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace transept {

// Copies go on independently. Tokenizer and stop strings must outlive it.
class AnswerText {
 public:
  AnswerText(const Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : stream_(tokenizer, false), stops_(&stops) {}

  // Adds a token; gives the new text that is certain to stay: the beginning of what may become a stop string waits.
  std::string push(int32_t token) { return add(stream_.push(token)); }
  // What still waited, when no token follows; a stop string may be completed by it.
  std::string finish();
  // Whether a stop string was completed; the text ended before it.
  bool stopped() const { return stopped_; }

 private:
  std::string add(std::string_view text);

  StreamDecoder stream_;
  const std::vector<std::string>* stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace transept
