// Where a pattern of a tokenizer.json ({"String": ...} or {"Regex": ...}) matches. The patterns of GPT-2, LLaMA 3,
// Qwen2, DeepSeek-V3 and GPT-4o are known by their text and matched by hand on our own Unicode tables; any other runs
// in PCRE2 (JIT, UTF, UCP, bounded), whose tables are of an older Unicode version, so that letters and digits assigned
// after it are split otherwise than by Hugging Face tokenizers. Patterns that PCRE2 and Oniguruma read differently are
// refused.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/problem.h"

namespace transept {

struct PatternMatch {
  size_t begin, end;
};

// Where the character at `at` ends; one beyond the end of the text at its end.
inline size_t next_character(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

class SplitPattern {
 public:
  virtual ~SplitPattern() = default;
  // The leftmost match that begins at `from` or later in a valid UTF-8 text. The text is all of what the pattern may
  // look at; `from` <= text.size(), at a border of characters. A match may be empty. InputError when a foreign pattern
  // exceeds its bounds.
  virtual std::optional<PatternMatch> find(std::string_view text, size_t from) const = 0;
};

// Calls on_stretch(begin, end, matched) for the stretches of the text in order, matched ones and those between:
// together they are the text. An empty match right behind another match is none, and so is any in an empty text.
template <class Function>
void for_each_stretch(const SplitPattern& pattern, std::string_view text, const Function& on_stretch) {
  if (text.empty()) return;
  size_t done = 0, from = 0;
  bool matched_before = false;
  while (from <= text.size()) {
    const std::optional<PatternMatch> match = pattern.find(text, from);
    if (!match) break;
    const auto [begin, end] = *match;
    if (begin == end && matched_before && end == done) {
      from = next_character(text, end);
      continue;
    }
    if (begin > done) on_stretch(done, begin, false);
    on_stretch(begin, end, true);
    done = from = end;
    matched_before = true;
  }
  if (done < text.size()) on_stretch(done, text.size(), false);
}

// {"String": s} or {"Regex": r}, or a plain string (as {"String": s}). Null when a problem was added.
std::unique_ptr<SplitPattern> read_pattern(const Json& block, const std::string& where, Problems& problems);

// A regular expression in Oniguruma's spelling. Null when a problem was added.
std::unique_ptr<SplitPattern> regex_pattern(const std::string& regex, const std::string& where, Problems& problems);

}  // namespace transept
