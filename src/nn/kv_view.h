// What a layer sees of a cache: records of one sequence, in order of position. Implemented in src/infer; a layer never
// learns how they are stored.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/rows.h"

namespace transept {

// Consecutive records in memory. A record is what the attention kind's cache_rows() list, side by side.
struct RecordChunk {
  const float* data = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t first_position = 0;
};

class KvView {
 public:
  virtual ~KvView() = default;
  virtual std::span<const RecordChunk> chunks() = 0;  // what is stored now; valid until the next append
  virtual void append(ConstRows records) = 0;  // the next positions; may overwrite records that no later query can see
};

}  // namespace transept
