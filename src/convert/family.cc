#include "convert/family.h"

#include <nlohmann/json.hpp>

namespace transept {

ConfigReader::ConfigReader(const Json& document, std::string where, Problems& problems)
    : document_(document), where_(std::move(where)), problems_(problems) {
  // Keys that every family has and that do not change the numbers.
  ignore({"_name_or_path", "architectures", "auto_map", "bos_token_id", "chunk_size_feed_forward", "dtype",
          "eos_token_id", "id2label", "label2id", "model_type", "output_attentions", "output_hidden_states",
          "pad_token_id", "return_dict", "torch_dtype", "transformers_version", "use_cache"});
}

const Json* ConfigReader::find(const char* key) {
  known_.insert(key);
  const auto at = document_.find(key);
  return at == document_.end() ? nullptr : &*at;
}

const Json& ConfigReader::value(const char* key) {
  static const Json null;
  const Json* v = find(key);
  return v ? *v : null;
}

void ConfigReader::problem(const std::string& key, const std::string& what, const std::string& mend) {
  problems_.push_back({where_ + ": " + key, what, mend});
}

int64_t ConfigReader::integer(const char* key, std::optional<int64_t> fallback) {
  const Json* v = find(key);
  if (v && v->is_number_integer() && !(v->is_number_unsigned() && v->get<uint64_t>() > INT64_MAX))
    return v->get<int64_t>();
  if ((!v || v->is_null()) && fallback) return *fallback;
  problem(key, v ? "is " + v->dump() + ", not a whole number" : "is missing");
  return 0;
}

double ConfigReader::number(const char* key, std::optional<double> fallback) {
  const Json* v = find(key);
  if (v && v->is_number()) return v->get<double>();
  if ((!v || v->is_null()) && fallback) return *fallback;
  problem(key, v ? "is " + v->dump() + ", not a number" : "is missing");
  return 0;
}

bool ConfigReader::boolean(const char* key, std::optional<bool> fallback) {
  const Json* v = find(key);
  if (v && v->is_boolean()) return v->get<bool>();
  if ((!v || v->is_null()) && fallback) return *fallback;
  problem(key, v ? "is " + v->dump() + ", not true or false" : "is missing");
  return false;
}

std::string ConfigReader::text(const char* key, std::optional<std::string> fallback) {
  const Json* v = find(key);
  if (v && v->is_string()) return v->get<std::string>();
  if ((!v || v->is_null()) && fallback) return *fallback;
  problem(key, v ? "is " + v->dump() + ", not a text" : "is missing");
  return {};
}

void ConfigReader::require(const char* key, const Json& allowed, const char* why) {
  const Json* v = find(key);
  if (v && !v->is_null() && *v != allowed)
    problem(key, "is " + v->dump() + ": " + why, "only " + allowed.dump() + " is supported");
}

void ConfigReader::ignore(std::initializer_list<const char*> keys) {
  for (const char* key : keys) known_.insert(key);
}

void ConfigReader::finish() {
  for (const auto& [key, v] : document_.items()) {
    const bool off = v.is_null() || (v.is_boolean() && !v.get<bool>());
    if (!known_.contains(key) && !off)
      problem(key, "is not understood and might change the numbers", "remove it if it has no effect on the model");
  }
}

bool uniform_layers(const ArchSpec& spec) {
  const Json document = spec_to_json(spec);
  return document.contains("num_hidden_layers");
}

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> all{&kLlamaFamily, &kMistralFamily, &kGpt2Family};
  return all;
}

}  // namespace transept
