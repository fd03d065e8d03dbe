// Values and names from outside, made fit to be quoted in an error: short, printable, valid UTF-8.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace transept {

// In double quotes, non-ASCII and control characters escaped, cut after 60 bytes.
inline std::string in_quotes(std::string_view text) {
  constexpr size_t kShown = 60;
  const std::string shown(text.substr(0, kShown));
  std::string s = Json(shown).dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShown) s += "...";
  return s;
}

inline std::string printable(std::string_view text) {
  const std::string s = in_quotes(text);
  return text.size() > 60 ? s.substr(1, s.size() - 5) + "..." : s.substr(1, s.size() - 2);
}

inline std::string describe_json(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "the string " + in_quotes(value.get_ref<const std::string&>());
  if (value.is_null()) return "null";
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return "a number that is not finite";
  if (value.is_number()) return value.dump();
  return "a value of no JSON type";
}

inline std::string join(std::span<const std::string> names) {
  std::string s;
  for (const std::string& name : names) s += (s.empty() ? "" : ", ") + name;
  return s;
}

}  // namespace transept
