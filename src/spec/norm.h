// Norm kinds and where they stand in a block.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "spec/fields.h"
#include "spec/kinds.h"
#include "spec/params.h"

namespace transept {

// Where the norm n of a sublayer f stands. After a stack whose residual stream is not normalized comes a final norm.
enum class NormPlacement {
  kPre,           // x + f(n(x)): GPT-2, LLaMA
  kPost,          // n(x + f(x)), as in arXiv:1706.03762 section 3.1; no final norm, since the last layer ends with one
  kPostSublayer,  // x + n(f(x)): the residual stays outside (OLMo 2, arXiv:2501.00656; Swin v2)
  kSandwich,      // x + n'(f(n(x))): a norm on either side (arXiv:2105.13290; Gemma 2)
};
template <>
struct EnumNames<NormPlacement> {
  static constexpr std::array<std::string_view, 4> kNames{"pre", "post", "post_sublayer", "sandwich"};
};

// y = (x - mean) / sqrt(var + eps) * weight + bias (arXiv:1607.06450), variance over the features, not corrected.
struct LayerNormSpec {
  static constexpr std::string_view kName = "layernorm";
  double eps = 1e-5;
  bool bias = true;
  bool elementwise_affine = true;
  template <class V>
  void fields(V& v) {
    v("eps", eps, Above{0}, "added to the variance");
    v("bias", bias, Any{}, "whether the norm adds a bias");
    v("elementwise_affine", elementwise_affine, Any{}, "false: the norm has no parameters at all (OLMo)");
  }
  void declare(int64_t width, ParamList& p) const {
    if (!elementwise_affine) return;
    p.add("weight", {width}, Init::kOnes);
    if (bias) p.add("bias", {width}, Init::kZeros);
  }
  Init unit() const { return Init::kOnes; }
  double weight_offset() const { return 0; }
  int64_t saved_per_row() const { return 2; }  // mean and reciprocal standard deviation, kept for the backward pass
};

// y = x / sqrt(mean(x^2) + eps) * weight (arXiv:1910.07467).
struct RmsNormSpec {
  static constexpr std::string_view kName = "rmsnorm";
  double eps = 1e-5;
  bool unit_offset = false;
  bool elementwise_affine = true;
  template <class V>
  void fields(V& v) {
    v("eps", eps, Above{0}, "added to the mean square");
    v("unit_offset", unit_offset, Any{}, "the factor is 1 + weight, and weights begin at 0 (Gemma)");
    v("elementwise_affine", elementwise_affine, Any{}, "false: the norm has no parameters");
  }
  void declare(int64_t width, ParamList& p) const {
    if (elementwise_affine) p.add("weight", {width}, unit());
  }
  Init unit() const { return unit_offset ? Init::kZeros : Init::kOnes; }
  double weight_offset() const { return unit_offset ? 1 : 0; }
  int64_t saved_per_row() const { return 1; }
};

using NormKinds = Kinds<LayerNormSpec, RmsNormSpec>;
using NormSpec = NormKinds::Any;

inline double norm_eps(const NormSpec& any) {
  return std::visit([](const auto& n) { return n.eps; }, any);
}
inline double norm_offset(const NormSpec& any) {
  return std::visit([](const auto& n) { return n.weight_offset(); }, any);
}

// The initial value of weights that leave what the norm gives as it is, also of a QK-norm beside it.
inline Init norm_unit(const NormSpec& any) {
  return std::visit([](const auto& n) { return n.unit(); }, any);
}

}  // namespace transept
