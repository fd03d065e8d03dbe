#include "convert/end_tokens.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/problem.h"

namespace transept {
namespace fs = std::filesystem;

std::vector<int32_t> read_end_tokens(const fs::path& folder) {
  constexpr const char* kKey = "eos_token_id";
  for (const char* name : {"generation_config.json", "config.json"}) {
    const fs::path path = folder / name;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    const Json document = read_json(path);
    if (!document.is_object()) throw InputError(path.string(), "is no JSON object");
    const auto value = document.find(kKey);
    if (value == document.end() || value->is_null()) continue;
    std::vector<int32_t> ids;
    for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
      if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
        throw InputError(path.string() + ": " + kKey, "is neither an id nor a list of ids");
      ids.push_back(id.get<int32_t>());
    }
    return ids;
  }
  return {};
}

}  // namespace transept
