// What a trained parameter costs beside its activations: itself, its gradient, a master copy, the optimizer's state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/count.h"
#include "spec/params.h"

namespace transept {

// Mixed precision (arXiv:1710.03740): weights, gradients and activations in `element_bytes`, and a float32 copy of the
// weights that the optimizer moves.
struct TrainingPrecision {
  std::string_view name;  // of --train-dtype
  int64_t element_bytes;
  int64_t master_bytes;  // of an element of the copy; 0: there is none
};

// AdamW's two moments, in float32, or in 8 bits with a float32 scale for each block of 2,048 elements, where tensors of
// fewer than 4,096 elements stay float32 (arXiv:2110.02861, section 2).
struct OptimizerKind {
  std::string_view name;  // of --optimizer
  bool eight_bits;
};

const std::vector<TrainingPrecision>& training_precisions();
const std::vector<OptimizerKind>& optimizer_kinds();

Count optimizer_bytes(const OptimizerKind& optimizer, Count tensor_elements);

}  // namespace transept
