// Attention modules, built from their specs. One forward for training, prefill and decode.
#pragma once

#include <memory>
#include <string>

#include "nn/forward_context.h"
#include "nn/parameters.h"
#include "spec/arch_spec.h"

namespace transept {

class Attention {
 public:
  virtual ~Attention() = default;
  // x [rows, hidden]: the input of the sublayer. `end` is applied to the output projection. Result [rows, hidden].
  virtual Var forward(const ForwardContext& context, const Var& x, LinearEnd end) const = 0;
};

// Where a layer's attention is built: the layer's other choices, its parameters' prefix ("layers.3.attention."), its
// number in the cache, and how positions act in it.
struct AttentionPlace {
  const LayerSpec& layer_spec;
  const Parameters& parameters;
  std::string prefix;
  int64_t layer;
  const Position& position;
};

// Self-attention, and attention of a decoder to its encoder's result.
std::unique_ptr<Attention> build(const GqaSpec& spec, const AttentionPlace& place);
std::unique_ptr<Attention> build(const MlaSpec& spec, const AttentionPlace& place);
std::unique_ptr<Attention> build_cross(const GqaSpec& spec, const AttentionPlace& place);

inline std::unique_ptr<Attention> build_attention(const AttentionPlace& place) {
  return std::visit([&](const auto& spec) { return build(spec, place); }, place.layer_spec.attention);
}
inline std::unique_ptr<Attention> build_cross_attention(const AttentionPlace& place) {
  return std::visit(
      [&]<class K>(const K& spec) -> std::unique_ptr<Attention> {
        if constexpr (K::kCross) return build_cross(spec, place);
        return nullptr;  // the spec has refused it
      },
      place.layer_spec.attention);
}

}  // namespace transept
