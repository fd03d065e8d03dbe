// Where the goldens lie, and how tests read them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ckpt/npy.h"

namespace transept {

inline std::filesystem::path goldens() { return std::filesystem::path(TRANSEPT_SOURCE_DIR) / "tests/goldens"; }

inline std::vector<int32_t> read_tokens(const std::filesystem::path& npy) {
  const std::vector<int64_t> wide = read_npy(npy).as_i64();
  return {wide.begin(), wide.end()};
}

}  // namespace transept
