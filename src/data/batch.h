// What one forward and backward pass reads: sequences of their own lengths, one after another, without any filling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cross_entropy.h"
#include "tensor/batch_layout.h"

namespace transept {

struct Batch {
  BatchLayout layout;
  std::vector<int32_t> tokens;   // all rows of the layout
  std::vector<int32_t> targets;  // beside each token what is scored there, or kIgnoredTarget
  int64_t target_count = 0;      // targets that are not kIgnoredTarget
  // Encoder-decoder: what the encoder reads, as many sequences as `layout` has; empty otherwise.
  BatchLayout source_layout;
  std::vector<int32_t> source_tokens;

  int64_t rows() const { return static_cast<int64_t>(tokens.size() + source_tokens.size()); }

  // Adds a sequence, from position 0; `row_targets` has an entry a token.
  void add(std::span<const int32_t> row_tokens, std::span<const int32_t> row_targets);
  void add_source(std::span<const int32_t> row_tokens);
};

}  // namespace transept
