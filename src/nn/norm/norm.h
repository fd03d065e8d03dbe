// Norm modules, built from their specs.
#pragma once

#include <string>

#include "nn/parameters.h"
#include "ops/norm.h"
#include "spec/norm.h"

namespace transept {

class Norm {
 public:
  // `prefix` is that of the norm's parameters ("layers.3.ffn_norm.").
  Norm(const NormSpec& spec, const Parameters& parameters, const std::string& prefix)
      : spec_(spec), weight_(parameters.param(prefix + "weight")), bias_(parameters.param(prefix + "bias")) {}

  Var forward(const OpContext& context, const Var& x) const {
    return std::visit([&](const auto& kind) { return apply(context, x, kind); }, spec_);
  }

 private:
  Var apply(const OpContext& context, const Var& x, const RmsNormSpec& kind) const {
    return rms_norm(context, x, weight_, static_cast<float>(kind.weight_offset()), static_cast<float>(kind.eps));
  }
  Var apply(const OpContext& context, const Var& x, const LayerNormSpec& kind) const {
    return layer_norm(context, x, weight_, bias_, static_cast<float>(kind.eps));
  }

  NormSpec spec_;
  Param weight_, bias_;
};

}  // namespace transept
