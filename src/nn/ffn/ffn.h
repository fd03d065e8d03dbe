// Feed-forward modules, built from their specs: one network, or a mixture of experts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nn/forward_context.h"
#include "nn/parameters.h"
#include "spec/arch_spec.h"

namespace transept {

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  // x [rows, hidden]: the input of the sublayer. `end` is applied to the result, [rows, hidden].
  virtual Var forward(const ForwardContext& context, const Var& x, const LinearEnd& end) const = 0;
};

// Where a layer's network is built: the layer's spec, its parameters' prefix ("layers.3.ffn."), and the number of the
// sublayer's place for dropout.
struct FfnPlace {
  const LayerSpec& layer_spec;
  const Parameters& parameters;
  std::string prefix;
  uint32_t site;
};

std::unique_ptr<FeedForward> build_dense(const FfnSpec& spec, const Parameters& parameters, const std::string& prefix);
std::unique_ptr<FeedForward> build_moe(const FfnPlace& place);

inline std::unique_ptr<FeedForward> build_ffn(const FfnPlace& place) {
  if (place.layer_spec.moe) return build_moe(place);
  return build_dense(place.layer_spec.ffn, place.parameters, place.prefix);
}

}  // namespace transept
