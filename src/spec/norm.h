// Norm kinds and where they stand in a block.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "spec/fields.h"
#include "spec/kinds.h"
#include "spec/params.h"

namespace transept {

// kPre:  x + f(norm(x)), and a final norm after the last layer (GPT-2, LLaMA).
// kPost: norm(x + f(x)), as in arXiv:1706.03762 section 3.1; no final norm, since the last layer ends with one.
enum class NormPlacement { kPre, kPost };
template <>
struct EnumNames<NormPlacement> {
  static constexpr std::array<std::string_view, 2> kNames{"pre", "post"};
};

// y = (x - mean) / sqrt(var + eps) * weight + bias (arXiv:1607.06450), variance over the features, not corrected.
struct LayerNormSpec {
  static constexpr std::string_view kName = "layernorm";
  double eps = 1e-5;
  bool bias = true;
  template <class V>
  void fields(V& v) {
    v("eps", eps, Above{0}, "added to the variance");
    v("bias", bias, Any{}, "whether the norm adds a bias");
  }
  void declare(int64_t width, ParamList& p) const {
    p.add("weight", {width}, Init::kOnes);
    if (bias) p.add("bias", {width}, Init::kZeros);
  }
  int64_t saved_per_row() const { return 2; }  // mean and reciprocal standard deviation, kept for the backward pass
};

// y = x / sqrt(mean(x^2) + eps) * weight (arXiv:1910.07467).
struct RmsNormSpec {
  static constexpr std::string_view kName = "rmsnorm";
  double eps = 1e-5;
  template <class V>
  void fields(V& v) {
    v("eps", eps, Above{0}, "added to the mean square");
  }
  void declare(int64_t width, ParamList& p) const { p.add("weight", {width}, Init::kOnes); }
  int64_t saved_per_row() const { return 1; }
};

using NormKinds = Kinds<LayerNormSpec, RmsNormSpec>;
using NormSpec = NormKinds::Any;

}  // namespace transept
