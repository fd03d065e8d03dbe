// The embedded table of machines, machines.json.
#pragma once

#include "base/embedded_document.h"

namespace transept {

std::span<const EmbeddedDocument> machines_data();

}  // namespace transept
