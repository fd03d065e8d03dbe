// The known name closest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace transept {

// Empty when none is close: more than a third of the letters (at least two) would have to change, and none is it with
// letters left out.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace transept
