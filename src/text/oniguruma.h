// From Oniguruma's regular expressions (its Ruby syntax, which Hugging Face tokenizers read patterns in) to those of
// PCRE2 with UTF, UCP and MULTILINE set. What the two read differently is rewritten, or refused: nested classes become
// one class; \s, \w, \b and scripts are spelled out as Oniguruma has them; intersections, \h, \R, \G, recursion,
// options in mid-pattern and {n,m}+ are refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace transept {

struct Translation {
  std::optional<std::string> pattern;
  std::string refused;  // what cannot be translated, where there is no pattern
};

Translation oniguruma_to_pcre(std::string_view pattern);

}  // namespace transept
