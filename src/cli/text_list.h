// A list of texts in a file.
#pragma once

#include <string>
#include <vector>

namespace transept {

inline constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;

// From a file that holds a JSON array of strings.
std::vector<std::string> read_texts(const std::string& path);

}  // namespace transept
