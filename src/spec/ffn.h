// Feed-forward kinds: act(x W1) W2 (arXiv:1706.03762 section 3.3) and its gated forms (act(x Wg) * x Wu) Wd
// (arXiv:2002.05202). The kinds differ only in activation and gate, so they are rows of a table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "spec/fields.h"
#include "spec/params.h"

namespace transept {

enum class Activation { kRelu, kReluSquared, kGelu, kGeluTanh, kSilu, kSigmoid, kClampedSilu };

// gelu is x * Phi(x) with the error function; gelu_tanh its tanh approximation (arXiv:1606.08415 section 2).
// relu_squared is max(x, 0)^2 (arXiv:2109.08668). In geglu the gate is tanh-GELU, as T5 v1.1 and Gemma run it.
// swiglu_clamped is g sigmoid(1.702 g) (u + 1) with g the gate, at most 7, and u held between -7 and 7
// (arXiv:2508.10925 section 2.2; the constants are those of the published code).
enum class FfnKind {
  kRelu,
  kReluSquared,
  kGelu,
  kGeluTanh,
  kSilu,
  kGlu,
  kReglu,
  kGeglu,
  kGegluErf,
  kSwiglu,
  kSwigluClamped
};
template <>
struct EnumNames<FfnKind> {
  static constexpr std::array<std::string_view, 11> kNames{"relu",      "relu_squared", "gelu",          "gelu_tanh",
                                                           "silu",      "glu",          "reglu",         "geglu",
                                                           "geglu_erf", "swiglu",       "swiglu_clamped"};
};

struct FfnForm {
  Activation activation;
  bool gated;
  // Name of the first projection's parameters.
  std::string in_name() const { return gated ? "gate_up" : "up"; }
};
inline constexpr std::array<FfnForm, EnumNames<FfnKind>::kNames.size()> kFfnForms{{
    {Activation::kRelu, false},
    {Activation::kReluSquared, false},
    {Activation::kGelu, false},
    {Activation::kGeluTanh, false},
    {Activation::kSilu, false},
    {Activation::kSigmoid, true},
    {Activation::kRelu, true},
    {Activation::kGeluTanh, true},
    {Activation::kGelu, true},
    {Activation::kSilu, true},
    {Activation::kClampedSilu, true},
}};

struct FfnSpec {
  FfnKind kind = FfnKind::kSwiglu;
  int64_t intermediate_size = 0;
  bool bias = false;

  template <class V>
  void fields(V& v) {
    v("kind", kind, Any{}, "activation, and whether it is gated");
    v("intermediate_size", intermediate_size, AtLeast{1}, "features between the two projections");
    v("bias", bias, Any{}, "biases on the projections");
  }

  FfnForm form() const { return kFfnForms[static_cast<size_t>(kind)]; }
  // Width of the first projection: gate and up side by side when gated (rows: all of the gate, then all of up).
  int64_t in_width() const { return form().gated ? 2 * intermediate_size : intermediate_size; }

  void declare(int64_t hidden_size, ParamList& p, const std::string& prefix = "") const {
    const std::string in = prefix + form().in_name();
    p.add(in + ".weight", {in_width(), hidden_size}, Init::kNormal, {.shard = Shard::kRows});
    if (bias) p.add(in + ".bias", {in_width()}, Init::kZeros, {.shard = Shard::kRows});
    p.add(prefix + "down.weight", {hidden_size, intermediate_size}, Init::kNormalResidual, {.shard = Shard::kColumns});
    if (bias) p.add(prefix + "down.bias", {hidden_size}, Init::kZeros);
  }
};

}  // namespace transept
