// How numbers are stored: plain types, and the blocks of GGUF's quantized types (ggml's block formats: so many elements
// share scales, so a type has a size a block).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/count.h"

namespace transept {

struct StoredType {
  std::string_view name;
  int64_t block_elements;
  int64_t block_bytes;
  bool quantized() const { return block_elements > 1; }
  double bits_per_element() const { return 8 * static_cast<double>(block_bytes) / static_cast<double>(block_elements); }
};

// All of them, plain ones first.
const std::vector<StoredType>& stored_types();
// Null: none has this name.
const StoredType* find_stored_type(std::string_view name);
// Whether rows of a cache can have it: a row is written by itself, so the K types' long blocks do not serve.
bool serves_a_cache(const StoredType& type);

// Rows of so many elements, each rounded up to whole blocks.
Count stored_rows(int64_t width, Count rows, const StoredType& type);

}  // namespace transept
