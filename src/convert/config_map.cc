#include "convert/config_map.h"

#include <cstdint>

namespace transept {

ConfigMap::ConfigMap(const Json& document, std::string where, Problems& problems)
    : document_(&document), where_(std::move(where)), problems_(&problems) {
  // Keys that every family has and that do not change the numbers.
  ignore({"_name_or_path",
          "architectures",
          "auto_map",
          "bos_token_id",
          "chunk_size_feed_forward",
          "dtype",
          "eos_token_id",
          "id2label",
          "label2id",
          "model_type",
          "output_attentions",
          "output_hidden_states",
          "pad_token_id",
          "problem_type",
          "quantization_config",
          "return_dict",
          "sep_token_id",
          "torch_dtype",
          "transformers_version",
          "use_cache"});
}

const Json* ConfigMap::find(const char* key) {
  known_.insert(key);
  const auto at = document_->find(key);
  return at == document_->end() ? nullptr : &*at;
}

const Json& ConfigMap::value(const char* key) {
  static const Json null;
  const Json* v = reading() ? find(key) : nullptr;
  return v ? *v : null;
}

void ConfigMap::write(const char* key, const Json& value) { (*out_)[key] = value; }

void ConfigMap::problem(const std::string& key, const std::string& what, const std::string& mend) {
  problems_->push_back({where_ + ": " + key, what, mend});
}

template <class T>
void ConfigMap::read_as(const char* key, T& value, const std::optional<T>& fallback, bool (*is)(const Json&),
                        const char* noun) {
  value = T{};
  const Json* v = find(key);
  if (v && is(*v)) {
    value = v->get<T>();
  } else if ((!v || v->is_null()) && fallback) {
    value = *fallback;
  } else {
    problem(key, v ? "is " + v->dump() + ", not " + noun : "is missing");
  }
}

void ConfigMap::read(const char* key, int64_t& value, std::optional<int64_t> fallback) {
  const auto fits = [](const Json& v) {
    return v.is_number_integer() && !(v.is_number_unsigned() && v.get<uint64_t>() > INT64_MAX);
  };
  read_as<int64_t>(key, value, fallback, fits, "a whole number");
}
void ConfigMap::read(const char* key, double& value, std::optional<double> fallback) {
  read_as<double>(key, value, fallback, [](const Json& v) { return v.is_number(); }, "a number");
}
void ConfigMap::read(const char* key, bool& value, std::optional<bool> fallback) {
  read_as<bool>(key, value, fallback, [](const Json& v) { return v.is_boolean(); }, "true or false");
}
void ConfigMap::read(const char* key, std::string& value, std::optional<std::string> fallback) {
  read_as<std::string>(key, value, fallback, [](const Json& v) { return v.is_string(); }, "a text");
}

void ConfigMap::require(const char* key, const Json& allowed, const char* why) {
  if (!reading()) return;
  const Json* v = find(key);
  if (v && !v->is_null() && *v != allowed)
    problem(key, "is " + v->dump() + ": " + why, "only " + allowed.dump() + " is supported");
}

void ConfigMap::ignore(std::initializer_list<const char*> keys) {
  for (const char* key : keys) known_.insert(key);
}

void ConfigMap::layers(const char* key, StackSpec& stack, const LayerSpec& layer, std::optional<int64_t> fallback) {
  int64_t count = static_cast<int64_t>(stack.layers.size());
  (*this)(key, count, fallback);
  if (!reading()) return;
  if (count < 1 || count > kMaxLayers) {
    problem(key, std::to_string(count) + " is out of range", "allowed are 1 to " + std::to_string(kMaxLayers));
    count = 1;
  }
  stack.position = layer.position;
  stack.final_norm = layer.norm;
  stack.layers.assign(static_cast<size_t>(count), layer);
}

void ConfigMap::finish() {
  for (const auto& [key, v] : document_->items()) {
    const bool off = v.is_null() || (v.is_boolean() && !v.get<bool>());
    if (!known_.contains(key) && !off)
      problem(key, "is not understood and might change the numbers", "remove it if it has no effect on the model");
  }
}

}  // namespace transept
