// The functions that every template can call: range, dict and namespace, and those that transformers adds,
// raise_exception and strftime_now.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/value.h"

namespace transept::jinja {

// What raise_exception throws: the template's own words about its input.
class RaisedError : public TemplateError {
 public:
  using TemplateError::TemplateError;
};

std::optional<Value> global(std::string_view name);

}  // namespace transept::jinja
