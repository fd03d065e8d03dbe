// Numbers as people read them.
#pragma once

#include <string>
#include <string_view>

namespace transept {

inline constexpr std::string_view kNothing = "–";  // stands for a number that is not there

std::string exact_number(double value);   // the shortest text that reads back to the same double; "" when not finite
std::string format_number(double value);  // four significant digits, thousands separated: "12,346", "2.346", "3e-4"
std::string format_count(double value);   // a whole number with separators: "1,234,567"
std::string format_si(double value, std::string_view unit);  // "12.3 GFLOP/s"
std::string format_bytes(double value);                      // "1.50 GiB"
std::string format_percent(double fraction);                 // signed: "+1.25 %"

}  // namespace transept
