#include "nn/block.h"

#include "base/rng.h"

namespace transept {
namespace {
std::string prefix(int64_t layer, const char* part) { return "layers." + std::to_string(layer) + "." + part + "."; }
}  // namespace

DropoutMask DropoutPlan::mask(uint32_t site, int64_t width) const {
  // 2^40 elements a pass and site are far more than a batch holds; 2^24 passes a seed before the counter would touch
  // the next.
  return {.key = seed,
          .stream = (uint64_t{static_cast<uint32_t>(Stream::kDropout)} << 32) | site,
          .first = pass << 40,
          .full_width = width,
          .p = p};
}

Block::Block(const LayerSpec& spec, const Parameters& parameters, int64_t layer)
    : layer_(layer),
      placement_(spec.placement),
      attention_(build_attention(spec.attention, parameters, prefix(layer, "attention"), layer)),
      attention_norm_(spec.norm, parameters, prefix(layer, "attention_norm")),
      ffn_norm_(spec.norm, parameters, prefix(layer, "ffn_norm")),
      ffn_(spec.ffn, parameters, prefix(layer, "ffn")) {}

template <class F>
Var Block::sublayer(const ForwardContext& context, const Var& x, const Norm& norm, uint32_t site, const F& f) const {
  const LinearEnd end{.bias = {}, .dropout = context.dropout.mask(site, x.width), .residual = &x};
  if (placement_ == NormPlacement::kPre) return f(norm.forward(context.op, x), end);
  return norm.forward(context.op, f(x, end));
}

Var Block::forward(const ForwardContext& context, const Var& x) const {
  const uint32_t site = 2 * static_cast<uint32_t>(layer_) + 1;  // site 0 is the embedding's
  const Var mid = sublayer(context, x, attention_norm_, site,
                           [&](const Var& in, const LinearEnd& end) { return attention_->forward(context, in, end); });
  if (context.observe) context.observe("attention", layer_, mid.view());
  Var out = sublayer(context, mid, ffn_norm_, site + 1,
                     [&](const Var& in, const LinearEnd& end) { return ffn_.forward(context.op, in, end); });
  if (context.observe) context.observe("ffn", layer_, out.view());
  return out;
}

}  // namespace transept
