// Methods of Python's str, dict, list and tuple. Those that change a list or a dict are refused, as by jinja2's
// ImmutableSandboxedEnvironment.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/value.h"

namespace transept::jinja {

// The method as something to call; undefined when it is one that is refused; nothing when there is none.
std::optional<Value> method(const Value& of, std::string_view name);

}  // namespace transept::jinja
