// A transformer layer: attention and feed-forward sublayers on a residual stream, with the norm before each (x +
// f(norm(x))) or after the sum (norm(x + f(x))), as the spec's placement says.
#pragma once

#include <memory>

#include "nn/attention/attention.h"
#include "nn/ffn/ffn.h"
#include "nn/forward_context.h"
#include "nn/norm/norm.h"

namespace transept {

class Block {
 public:
  Block(const LayerSpec& spec, const Parameters& parameters, int64_t layer);

  // x [rows, hidden] to [rows, hidden].
  Var forward(const ForwardContext& context, const Var& x) const;

 private:
  template <class F>
  Var sublayer(const ForwardContext& context, const Var& x, const Norm& norm, uint32_t site, const F& f) const;

  int64_t layer_;
  NormPlacement placement_;
  std::unique_ptr<Attention> attention_;
  Norm attention_norm_, ffn_norm_;
  Ffn ffn_;
};

}  // namespace transept
