// A family: how checkpoints of one published kind are spelled. One import table a family (convert/families/*.cc):
// config keys to spec and back, stored tensors to declared parameters. Nothing else knows a family.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "spec/arch_spec.h"

namespace transept {

// A stored tensor and the rows of the declared parameter that it holds.
struct Piece {
  std::string stored_name;
  int64_t first_row = 0, rows = 0;  // of the parameter
  bool transposed = false;          // stored as [in, out]
};

// Reads a config document key by key, remembers what was asked for, and reports what nobody asked for.
class ConfigReader {
 public:
  ConfigReader(const Json& document, std::string where, Problems& problems);

  int64_t integer(const char* key, std::optional<int64_t> fallback = std::nullopt);
  double number(const char* key, std::optional<double> fallback = std::nullopt);
  bool boolean(const char* key, std::optional<bool> fallback = std::nullopt);
  std::string text(const char* key, std::optional<std::string> fallback = std::nullopt);
  // The value, or null when absent; the key counts as understood.
  const Json& value(const char* key);
  // A key that must have this value when it is there, since another one changes the numbers.
  void require(const char* key, const Json& allowed, const char* why);
  // Keys that do not change the numbers.
  void ignore(std::initializer_list<const char*> keys);
  void problem(const std::string& key, const std::string& what, const std::string& mend = {});
  // Every key that was not asked for and could change the numbers (its value is neither null nor false) becomes a
  // problem.
  void finish();

 private:
  const Json* find(const char* key);
  const Json& document_;
  std::string where_;
  Problems& problems_;
  std::set<std::string> known_;
};

struct Family {
  std::string_view model_type;  // of config.json
  // Problems are collected; the result is unspecified when there are any.
  ArchSpec (*spec_from_config)(const Json& config, const std::string& where, Problems& problems);
  // Nothing, with a reason, when the family has no such kinds. What it returns need not say all of the spec: the caller
  // reads it back and compares.
  std::optional<Json> (*config_from_spec)(const ArchSpec& spec, std::string& reason);
  // Where a parameter is stored.
  std::vector<Piece> (*pieces)(const ArchSpec& spec, const ParamDecl& decl);
  // Stored tensors that hold nothing of ours (masks, frequency tables); `name` is without `base_prefix`.
  bool (*ignorable)(const std::string& name);
  // Names may be stored with or without this prefix ("transformer."); "": none.
  std::string_view base_prefix;
};

// Whether all layers are alike: most families have no way to say that they differ.
bool uniform_layers(const ArchSpec& spec);

extern const Family kLlamaFamily, kMistralFamily, kGpt2Family;

// In the order in which an export tries them.
const std::vector<const Family*>& families();

}  // namespace transept
