// Attention modules, built from their specs. One forward for training, prefill and decode.
#pragma once

#include <memory>
#include <string>

#include "nn/forward_context.h"
#include "nn/parameters.h"
#include "spec/attention.h"

namespace transept {

class Attention {
 public:
  virtual ~Attention() = default;
  // x [rows, hidden]: the input of the sublayer. `end` is applied to the output projection. Result [rows, hidden].
  virtual Var forward(const ForwardContext& context, const Var& x, LinearEnd end) const = 0;
};

// `prefix` is that of the layer's attention parameters ("layers.3.attention.").
std::unique_ptr<Attention> build(const GqaSpec& spec, const Parameters& parameters, const std::string& prefix,
                                 int64_t layer);

inline std::unique_ptr<Attention> build_attention(const AttentionSpec& any, const Parameters& parameters,
                                                  const std::string& prefix, int64_t layer) {
  return std::visit([&](const auto& spec) { return build(spec, parameters, prefix, layer); }, any);
}

}  // namespace transept
