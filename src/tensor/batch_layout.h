// How the rows of an activation divide into sequences.
#pragma once

#include <cstdint>
#include <vector>

namespace transept {

struct SequenceRows {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_position = 0;  // of the first row
};

using BatchLayout = std::vector<SequenceRows>;

// `sequences` sequences of `length` tokens, each from position 0.
inline BatchLayout equal_sequences(int64_t sequences, int64_t length) {
  BatchLayout layout;
  for (int64_t s = 0; s < sequences; ++s) layout.push_back({s * length, length, 0});
  return layout;
}

}  // namespace transept
