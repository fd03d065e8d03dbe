#include "convert/sentence_transformer.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/problem.h"

namespace transept {
namespace fs = std::filesystem;

std::optional<SentencePooling> read_sentence_pooling(const fs::path& folder) {
  const fs::path file = folder / "1_Pooling" / "config.json";
  std::error_code code;
  if (!fs::is_regular_file(file, code)) return std::nullopt;
  const Json config = read_json(file);
  if (!config.is_object()) throw InputError(file.string(), "is no JSON object");
  SentencePooling found;
  int modes = 0;
  for (const auto& [key, value] : config.items()) {
    if (!key.starts_with("pooling_mode_") || value != Json(true)) continue;
    ++modes;
    if (key == "pooling_mode_cls_token") {
      found.pooling = Pooling::kCls;
    } else if (key != "pooling_mode_mean_tokens") {
      throw InputError(file.string() + ": " + key, "is not supported", "supported are mean_tokens and cls_token");
    }
  }
  if (modes != 1) throw InputError(file.string(), "does not ask for one pooling", "set one pooling_mode to true");
  const fs::path modules = folder / "modules.json";
  if (!fs::is_regular_file(modules, code)) return found;
  const Json list = read_json(modules);
  if (!list.is_array()) throw InputError(modules.string(), "is no JSON array");
  for (const Json& module : list) {
    const std::string type = module.is_object() && module.contains("type") && module.at("type").is_string()
                                 ? module.at("type").get<std::string>()
                                 : std::string();
    if (type.ends_with(".Normalize")) {
      found.normalize = true;
    } else if (!type.ends_with(".Transformer") && !type.ends_with(".Pooling")) {
      throw InputError(modules.string(), "has a module of type \"" + type + "\", which is not supported",
                       "supported are Transformer, Pooling and Normalize");
    }
  }
  return found;
}

}  // namespace transept
