// The studies that come with the program, studies/*.json.
#pragma once

#include "base/embedded_document.h"

namespace transept {

std::span<const EmbeddedDocument> studies_data();

}  // namespace transept
