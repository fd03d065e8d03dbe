// The embedded preset documents; the definition is made by embed_presets.cmake from presets/*.json.
#pragma once

#include <span>
#include <string_view>

namespace transept {

struct PresetData {
  std::string_view name;
  std::string_view document;
};

std::span<const PresetData> preset_data();

}  // namespace transept
