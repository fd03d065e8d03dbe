// Built-in text for machines without a network: scenes of a play in simple English, from a small grammar. A small model
// trained on it learns to speak in its forms.
#pragma once

#include <cstdint>
#include <string>

namespace transept {

// Exactly `bytes` bytes of ASCII text; the same for the same seed. A longer text begins with the shorter one.
std::string synthetic_text(uint64_t bytes, uint64_t seed);

// Pairs of digit strings, a line each, "source TAB target": the target is the source, reversed or as it is. Lengths are
// uniform in [min_length, max_length].
enum class PairTask { kReverse, kCopy };
std::string synthetic_pairs(PairTask task, int64_t lines, int64_t min_length, int64_t max_length, uint64_t seed);

}  // namespace transept
