// A transformer layer: sublayers on a residual stream, with norms where the spec's placement says (spec/norm.h) and
// joined as its block form says (spec/block.h).
#pragma once

#include <memory>
#include <string>

#include "nn/attention/attention.h"
#include "nn/ffn/ffn.h"
#include "nn/forward_context.h"
#include "nn/norm/norm.h"

namespace transept {

class Block {
 public:
  // `prefix` is that of the layer's parameters ("layers.3."), `layer` its number in its stack, `first_site` that of its
  // first place for dropout; it takes as many as it has sublayers.
  Block(const LayerSpec& spec, const Parameters& parameters, const std::string& prefix, int64_t layer,
        uint32_t first_site, const Position& position);

  // x [rows, hidden] to [rows, hidden].
  Var forward(const ForwardContext& context, const Var& x) const;

 private:
  struct Norms {
    std::unique_ptr<Norm> before, after;  // as far as the placement has them; `after` is that of the sum with kPost
  };
  Norms norms(const LayerSpec& spec, const Parameters& parameters, const std::string& name) const;
  template <class F>
  Var sublayer(const ForwardContext& context, const Var& x, const Norms& norms, uint32_t site, const char* part,
               const F& f) const;
  Var parallel(const ForwardContext& context, const Var& x) const;

  NormPlacement placement_;
  BlockForm form_;
  int64_t layer_;
  uint32_t first_site_;
  std::unique_ptr<Attention> attention_, cross_attention_;  // the latter null: none
  Norms attention_norms_, cross_attention_norms_, ffn_norms_;
  std::unique_ptr<FeedForward> ffn_;
};

}  // namespace transept
