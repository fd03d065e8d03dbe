// Feed-forward module, built from its spec.
#pragma once

#include <string>

#include "nn/ffn/activation.h"
#include "nn/parameters.h"
#include "ops/ffn.h"
#include "spec/ffn.h"

namespace transept {

class Ffn {
 public:
  Ffn(const FfnSpec& spec, const Parameters& parameters, const std::string& prefix) {
    const FfnForm form = spec.form();
    const std::string in = prefix + (form.gated ? "gate_up" : "up");
    params_ = {activation_kind(form.activation), form.gated, parameters.param(in + ".weight"),
               parameters.param(in + ".bias"), parameters.param(prefix + "down.weight")};
    bias_ = parameters.param(prefix + "down.bias");
  }

  Var forward(const OpContext& context, const Var& x, LinearEnd end) const {
    end.bias = bias_;
    return ffn(context, x, params_, end);
  }

 private:
  FfnParams params_;
  Param bias_;
};

}  // namespace transept
