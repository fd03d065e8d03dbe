// Built-in text for machines without a network: scenes of a play in simple English, from a small grammar. A small model
// trained on it learns to speak in its forms.
#pragma once

#include <cstdint>
#include <string>

namespace transept {

// Exactly `bytes` bytes of ASCII text; the same for the same seed. A longer text begins with the shorter one.
std::string synthetic_text(uint64_t bytes, uint64_t seed);

}  // namespace transept
