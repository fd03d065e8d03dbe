// A matrix of weights [rows, columns] as a product reads it: floats in one block, or 16-bit floats as a checkpoint
// stores them, in runs of rows that lie anywhere.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace transept {

struct StoredRows {
  const uint16_t* data = nullptr;   // row-major, without gaps
  int64_t first_row = 0, rows = 0;  // of the matrix
};

struct Weight {
  const float* values = nullptr;            // null: what is stored
  std::span<const StoredRows> stored = {};  // in order; together all rows
  DType dtype = DType::kF32;                // of what is stored: bf16 or f16
  int64_t columns = 0;
};

}  // namespace transept
