// Arguments of a call, and how built-in functions, filters, tests and methods take them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace transept::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Hands out the arguments of the built-in `name`; TemplateError where they do not fit.
class Taker {
 public:
  Taker(std::string_view name, Arguments& arguments) : name_(name), arguments_(arguments) {}
  // The next positional argument, or the one of this name; "": it has none.
  std::optional<Value> take(std::string_view parameter);
  Value need(std::string_view parameter);
  int64_t integer(std::string_view parameter, int64_t fallback);
  bool flag(std::string_view parameter, bool fallback);
  // A string; TemplateError for anything else.
  std::optional<std::string> string(std::string_view parameter);
  // TemplateError for what nobody took.
  void finish();

 private:
  std::string_view name_;
  Arguments& arguments_;
  size_t next_ = 0;
};

}  // namespace transept::jinja
