// A family: how checkpoints of one published kind are spelled. One import table a family (convert/families/*.cc):
// config keys to spec and back, stored tensors to declared parameters. Nothing else knows a family.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "convert/config_map.h"
#include "convert/tensor_names.h"
#include "spec/arch_spec.h"

namespace transept {

struct Family {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // the class that has the language-model head
  // Reads or writes config.json. What it writes need not say all of the spec: the caller reads it back and compares.
  void (*config)(ConfigMap& map, ArchSpec& spec);
  NameTable (*names)(const ArchSpec& spec);
  // Names may be stored with or without this prefix ("transformer."); "": none.
  std::string_view base_prefix = "";
  // Stored tensors that hold nothing of ours (masks, frequency tables, heads that are not the language model's).
  bool (*ignorable)(const ArchSpec& spec, const std::string& name) = nullptr;
  std::string_view zeros = "";  // a stored tensor that is nothing of ours as long as all of it is zero
};

// Problems are collected; the result is unspecified when there are any.
ArchSpec read_family_config(const Family& family, const Json& config, const std::string& where, Problems& problems);
// Nothing, with a reason, when the family has no such kinds.
std::optional<Json> write_family_config(const Family& family, const ArchSpec& spec, std::string& reason);

// In the order in which an export tries them.
const std::vector<const Family*>& families();
// By the name in config.json; null: none.
const Family* find_family(std::string_view model_type);

}  // namespace transept
