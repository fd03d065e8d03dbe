// Pairs of texts, a line each: "source TAB target" (.tsv), or a JSON object with the strings "source" and "target"
// (.jsonl).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/corpus.h"

namespace transept {

struct TextPair {
  std::string source, target;
  std::string where;  // file:line
};

// Whether every path names a file of pairs.
bool are_pairs(std::span<const std::filesystem::path> paths);

// InputError with file:line for each of the first bad lines: not one tab, no object, a string that is missing or empty.
std::vector<TextPair> read_pairs(const TextFile& file);

}  // namespace transept
