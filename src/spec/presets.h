// Presets: spec documents that are part of the program (src/spec/presets/*.json). The only place where a model is
// named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/arch_spec.h"

namespace transept {

std::vector<std::string> preset_names();  // sorted
bool is_preset(std::string_view name);
// InputError naming the closest presets when there is none of that name.
ArchSpec preset(std::string_view name);
Json preset_document(std::string_view name);

}  // namespace transept
