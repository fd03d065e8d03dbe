// One network: act(x W1) W2, gated or not (ops/ffn.h).
#include "nn/ffn/activation.h"
#include "nn/ffn/ffn.h"
#include "ops/ffn.h"

namespace transept {
namespace {

class Dense final : public FeedForward {
 public:
  Dense(const FfnSpec& spec, const Parameters& parameters, const std::string& prefix) {
    const FfnForm form = spec.form();
    const std::string in = prefix + form.in_name();
    params_ = {activation_kind(form.activation), form.gated, parameters.param(in + ".weight"),
               parameters.param(in + ".bias"), parameters.param(prefix + "down.weight")};
    bias_ = parameters.param(prefix + "down.bias");
  }

  Var forward(const ForwardContext& context, const Var& x, const LinearEnd& end) const override {
    LinearEnd with_bias = end;
    with_bias.bias = bias_;
    return ffn(context.op, x, params_, with_bias);
  }

 private:
  FfnParams params_;
  Param bias_;
};

}  // namespace

std::unique_ptr<FeedForward> build_dense(const FfnSpec& spec, const Parameters& parameters, const std::string& prefix) {
  return std::make_unique<Dense>(spec, parameters, prefix);
}

}  // namespace transept
