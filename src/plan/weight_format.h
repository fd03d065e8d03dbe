// The types that a model's weights are stored in, tensor by tensor. A plain type is that of all; a quantized one is
// that of the matrices, by the rules that llama.cpp's quantizer follows: norms and biases stay f32, the head (and a
// table that is the head) keeps q6_k or more, a matrix whose rows are no whole number of blocks falls back to q8_0, and
// to f16 where that does not fit either. The "_k_m" mixtures keep half of the layers' values and last projections in
// q6_k.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/count.h"
#include "plan/stored_type.h"
#include "spec/arch_spec.h"

namespace transept {

// All names: the stored types', and "q5_k_m", "q4_k_m".
std::vector<std::string_view> weight_format_names();

class WeightFormat {
 public:
  // Nothing when there is none of this name.
  static const WeightFormat* find(std::string_view name);

  // Bytes of one of the spec's parameters.
  Count bytes(const ArchSpec& spec, const ParamDecl& decl) const;

  std::string_view name;
  const StoredType* type = nullptr;  // of matrices
  bool mixed = false;
};

}  // namespace transept
