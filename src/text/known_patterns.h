// The split patterns of well-known vocabularies, matched by hand. A pattern is known by its text alone.
#pragma once

#include <memory>
#include <string_view>

#include "text/split_pattern.h"

namespace transept {

// Null when the pattern is none of them.
std::unique_ptr<SplitPattern> known_pattern(std::string_view regex);

// The pattern that ByteLevel splits by (GPT-2, encoder.py).
std::unique_ptr<SplitPattern> gpt2_pattern();

}  // namespace transept
