#include "text/jinja/arguments.h"

#include <algorithm>

namespace transept::jinja {

std::optional<Value> Taker::take(std::string_view parameter) {
  const auto named = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                                  [&](const auto& n) { return !parameter.empty() && n.first == parameter; });
  const bool given = next_ < arguments_.positional.size();
  if (named == arguments_.named.end())
    return given ? std::optional(std::move(arguments_.positional[next_++])) : std::nullopt;
  if (given) throw TemplateError(std::string(name_) + " got \"" + named->first + "\" twice");
  Value value = std::move(named->second);
  arguments_.named.erase(named);
  return value;
}

Value Taker::need(std::string_view parameter) {
  std::optional<Value> value = take(parameter);
  if (!value) throw TemplateError(std::string(name_) + " needs an argument \"" + std::string(parameter) + "\"");
  return std::move(*value);
}

int64_t Taker::integer(std::string_view parameter, int64_t fallback) {
  const std::optional<Value> value = take(parameter);
  if (!value) return fallback;
  if (const auto i = as_integer(*value)) return *i;
  throw TemplateError(std::string(name_) + ": \"" + std::string(parameter) + "\" must be an integer, not " +
                      kind_name(*value));
}

bool Taker::flag(std::string_view parameter, bool fallback) {
  const std::optional<Value> value = take(parameter);
  return value ? truth(*value) : fallback;
}

std::optional<std::string> Taker::string(std::string_view parameter) {
  const std::optional<Value> value = take(parameter);
  if (!value) return std::nullopt;
  if (const std::string* s = as_text(*value)) return *s;
  require_defined(*value);
  throw TemplateError(std::string(name_) + ": an argument must be a string, not " + kind_name(*value));
}

void Taker::finish() {
  if (next_ < arguments_.positional.size()) throw TemplateError(std::string(name_) + " got too many arguments");
  if (!arguments_.named.empty())
    throw TemplateError(std::string(name_) + " knows no argument \"" + arguments_.named.front().first + "\"");
}

}  // namespace transept::jinja
