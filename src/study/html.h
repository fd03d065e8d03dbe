// Text for a page: escaping, and numbers as people read them.
#pragma once

#include <string>
#include <string_view>

namespace transept {

// Safe inside an element and inside a quoted attribute. What no page may hold (control characters other than tab and
// newline, malformed UTF-8: byte-level models write it) becomes U+FFFD.
std::string escape_html(std::string_view text);

// Code points of well-formed UTF-8.
int text_length(std::string_view text);

inline constexpr std::string_view kNothing = "–";  // stands for a number that is not there

std::string exact_number(double value);   // the shortest text that reads back to the same double; "" when not finite
std::string format_number(double value);  // four significant digits, thousands separated: "12,346", "2.346", "3e-4"
std::string format_count(double value);   // a whole number with separators: "1,234,567"
std::string format_si(double value, std::string_view unit);  // "12.3 GFLOP/s"
std::string format_bytes(double value);                      // "1.50 GiB"
std::string format_percent(double fraction);                 // signed: "+1.25 %"

}  // namespace transept
