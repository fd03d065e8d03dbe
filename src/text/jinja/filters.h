// Filters and tests: jinja2's, as far as chat templates use them, and transformers' own tojson.
#pragma once

#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace transept::jinja {

// TemplateError for an unknown filter, and for values and arguments that it does not take.
Value apply_filter(Heap& heap, std::string_view name, const Value& value, Arguments arguments);
bool apply_test(Heap& heap, std::string_view name, const Value& value, Arguments arguments);

}  // namespace transept::jinja
