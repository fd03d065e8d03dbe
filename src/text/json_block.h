// The members of one JSON object, read with defaults; what is misshapen becomes a problem with its path.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/problem.h"

namespace transept {

// A whole number that is not negative.
inline std::optional<uint64_t> count_of(const Json& value) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0)) return std::nullopt;
  return value.get<uint64_t>();
}

class JsonBlock {
 public:
  // A problem where the block is no object; it then has no members.
  JsonBlock(const Json& block, std::string where, Problems& problems)
      : block_(block), where_(std::move(where)), problems_(problems) {
    if (!block.is_object()) add({}, "is no JSON object");
  }

  // Null where it is absent or null, which mean the same in these files.
  const Json* find(const char* key) const {
    if (!block_.is_object()) return nullptr;
    const auto at = block_.find(key);
    return at == block_.end() || at->is_null() ? nullptr : &*at;
  }
  std::string path(const std::string& key) const { return key.empty() ? where_ : where_ + "." + key; }
  void add(const std::string& key, std::string what, std::string mend = {}) const {
    problems_.push_back({path(key), std::move(what), std::move(mend)});
  }

  bool boolean(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (value->is_boolean()) return value->get<bool>();
    add(key, "is neither true nor false");
    return otherwise;
  }
  std::optional<std::string> text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return value->get<std::string>();
    add(key, "is no string");
    return std::nullopt;
  }
  std::optional<uint64_t> count(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    const std::optional<uint64_t> count = count_of(*value);
    if (!count) add(key, "is no number that counts something");
    return count;
  }
  // An array, or null with a problem.
  const Json* list(const char* key) const {
    const Json* value = find(key);
    if (value != nullptr && value->is_array()) return value;
    add(key, "is no list");
    return nullptr;
  }

 private:
  const Json& block_;
  std::string where_;
  Problems& problems_;
};

}  // namespace transept
