// a.b, a[b] and a[b:c:d], as jinja2's sandbox looks them up: an attribute first, or an item first, then the other.
#pragma once

#include <string_view>

#include "text/jinja/value.h"

namespace transept::jinja {

// Undefined when there is neither attribute nor item; TemplateError when `of` is undefined itself.
Value attribute(Heap& heap, const Value& of, std::string_view name);
Value item(Heap& heap, const Value& of, const Value& key);
// Bounds are integers or none; TemplateError for a value that has no slices.
Value slice(Heap& heap, const Value& of, const Value& begin, const Value& end, const Value& step);

// The value behind a path such as "function.name" or "0.id", as the filters that take attributes read it. `fallback`
// stands for what is undefined on the way.
Value at_path(Heap& heap, const Value& of, const Value& path, const Value* fallback = nullptr);

}  // namespace transept::jinja
