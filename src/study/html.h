// Text for a page.
#pragma once

#include <string>
#include <string_view>

namespace transept {

// Safe inside an element and inside a quoted attribute. What no page may hold (control characters other than tab and
// newline, malformed UTF-8: byte-level models write it) becomes U+FFFD.
std::string escape_html(std::string_view text);

// Code points of well-formed UTF-8.
int text_length(std::string_view text);

}  // namespace transept
