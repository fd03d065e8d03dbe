// Text from values: "%s is %d" % (a, b), "{} is {}".format(a, b), text with parts replaced, and JSON as transformers'
// filter tojson writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace transept::jinja {

// `values`: one value, a tuple of them, or a dict for %(name)s.
std::string percent_format(Heap& heap, std::string_view format, const Value& values);
// Fields without conversions and format specifications.
std::string brace_format(Heap& heap, std::string_view format, const Arguments& values);

// Python's str.replace; `limit` -1: every one.
std::string replaced(Heap& heap, std::string_view s, std::string_view from, std::string_view to, int64_t limit);

struct JsonStyle {
  bool ascii = false;                 // everything else as \uXXXX
  std::optional<std::string> indent;  // what a level is indented by; none: all on one line
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};
// Python's json.dumps; TemplateError for what it has no form for.
std::string json_text(Heap& heap, const Value& value, const JsonStyle& style);

}  // namespace transept::jinja
