// The documents of presets/, embedded at build time (cmake/EmbedDocuments.cmake).
#include "spec/presets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "spec/nearest.h"
#include "spec/presets_data.h"
#include "spec/text.h"

namespace transept {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const EmbeddedDocument& p : preset_data()) names.emplace_back(p.name);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_preset(std::string_view name) {
  return std::any_of(preset_data().begin(), preset_data().end(),
                     [&](const EmbeddedDocument& p) { return p.name == name; });
}

Json preset_document(std::string_view name) {
  for (const EmbeddedDocument& p : preset_data()) {
    if (p.name == name) return parse_json(p.text, "preset " + std::string(name));
  }
  const std::vector<std::string> names = preset_names();
  const std::string near = nearest_name(name, names);
  throw InputError(
      "preset", "none is named " + in_quotes(name),
      near.empty() ? "presets: " + join(names) : "did you mean " + in_quotes(near) + "? All: " + join(names));
}

ArchSpec preset(std::string_view name) { return spec_from_json(preset_document(name), "preset " + std::string(name)); }

}  // namespace transept
