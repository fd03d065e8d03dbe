// The embedded preset documents, presets/*.json.
#pragma once

#include "base/embedded_document.h"

namespace transept {

std::span<const EmbeddedDocument> preset_data();

}  // namespace transept
