#include "cli/text_list.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/problem.h"

namespace transept {

std::vector<std::string> read_texts(const std::string& path) {
  const Json json = read_json(path, kMostTextBytes);
  std::vector<std::string> texts;
  if (json.is_array()) {
    for (const Json& text : json) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
  }
  if (!json.is_array() || texts.size() != json.size())
    throw InputError(path, "is no JSON array of texts", "write it as [\"first\", \"second\"]");
  return texts;
}

}  // namespace transept
