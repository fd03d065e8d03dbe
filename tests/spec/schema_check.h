// The part of JSON Schema 2020-12 that our schema uses, as a checker. A keyword that it does not know makes it throw,
// so that none is passed over.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "base/json.h"

namespace transept {

inline bool schema_type_holds(const std::string& type, const Json& v) {
  if (type == "object") return v.is_object();
  if (type == "array") return v.is_array();
  if (type == "string") return v.is_string();
  if (type == "boolean") return v.is_boolean();
  if (type == "number") return v.is_number();
  if (type == "integer")
    return v.is_number_integer() || (v.is_number_float() && v.get<double>() == std::floor(v.get<double>()));
  throw std::logic_error("type " + type);
}

inline bool schema_accepts(const Json& schema, const Json& root, const Json& v) {
  if (schema.is_boolean()) return schema.get<bool>();
  const auto accepts = [&](const Json& s) { return schema_accepts(s, root, v); };
  for (const auto& [word, arg] : schema.items()) {
    if (word == "$schema" || word == "title" || word == "description" || word == "default" || word == "$defs") continue;
    if (word == "then" || word == "else") continue;  // with "if"
    if (word == "$ref") {
      if (!accepts(root.at(Json::json_pointer(arg.get<std::string>().substr(1))))) return false;
    } else if (word == "type") {
      if (!schema_type_holds(arg.get<std::string>(), v)) return false;
    } else if (word == "const") {
      if (v != arg) return false;
    } else if (word == "enum") {
      if (std::find(arg.begin(), arg.end(), v) == arg.end()) return false;
    } else if (word == "minimum") {
      if (v.is_number() && v.get<double>() < arg.get<double>()) return false;
    } else if (word == "maximum") {
      if (v.is_number() && v.get<double>() > arg.get<double>()) return false;
    } else if (word == "exclusiveMinimum") {
      if (v.is_number() && v.get<double>() <= arg.get<double>()) return false;
    } else if (word == "exclusiveMaximum") {
      if (v.is_number() && v.get<double>() >= arg.get<double>()) return false;
    } else if (word == "minItems") {
      if (v.is_array() && v.size() < arg.get<size_t>()) return false;
    } else if (word == "maxItems") {
      if (v.is_array() && v.size() > arg.get<size_t>()) return false;
    } else if (word == "items") {
      if (!v.is_array()) continue;
      for (const Json& item : v) {
        if (!schema_accepts(arg, root, item)) return false;
      }
    } else if (word == "required") {
      if (!v.is_object()) continue;
      for (const Json& key : arg) {
        if (!v.contains(key.get<std::string>())) return false;
      }
    } else if (word == "properties") {
      if (!v.is_object()) continue;
      for (const auto& [key, property] : arg.items()) {
        if (v.contains(key) && !schema_accepts(property, root, v[key])) return false;
      }
    } else if (word == "additionalProperties") {
      if (!v.is_object()) continue;
      for (const auto& [key, value] : v.items()) {
        if (!schema.at("properties").contains(key) && !schema_accepts(arg, root, value)) return false;
      }
    } else if (word == "oneOf") {
      if (std::count_if(arg.begin(), arg.end(), accepts) != 1) return false;
    } else if (word == "anyOf") {
      if (std::none_of(arg.begin(), arg.end(), accepts)) return false;
    } else if (word == "not") {
      if (accepts(arg)) return false;
    } else if (word == "if") {
      const char* branch = accepts(arg) ? "then" : "else";
      if (schema.contains(branch) && !accepts(schema[branch])) return false;
    } else {
      throw std::logic_error("keyword " + word);
    }
  }
  return true;
}

}  // namespace transept
