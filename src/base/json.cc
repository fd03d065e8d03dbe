#include "base/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/problem.h"

namespace transept {
namespace {
constexpr int kMaxDepth = 64;
}

Json parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> keys;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) throw InputError(where, "nests deeper than " + std::to_string(kMaxDepth) + " levels");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw InputError(where, "key \"" + value.get<std::string>() + "\" stands twice in one object",
                       "remove one of them");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& e) {
    throw InputError(where, "is not valid JSON (at byte " + std::to_string(e.byte) + ")",
                     "check it with a JSON validator");
  } catch (const Json::out_of_range&) {
    throw InputError(where, "holds a number beyond the range of a double", "check it with a JSON validator");
  }
}

Json read_json(const std::filesystem::path& path, uint64_t max_bytes) {
  return parse_json(read_file(path, max_bytes), path.string());
}

}  // namespace transept
