#include "nn/block.h"

#include "base/rng.h"
#include "ops/add.h"
#include "ops/tape.h"

namespace transept {

namespace {

uint64_t stream_of(Stream stream, uint32_t site) { return (uint64_t{static_cast<uint32_t>(stream)} << 32) | site; }

// 2^40 elements a pass and site are far more than a batch holds; 2^24 passes a seed before the counter would touch the
// next.
uint64_t first_of(uint64_t pass) { return pass << 40; }

// What a sublayer is added to and what it reads, for whoever watches the pass.
void observe_inputs(const ForwardContext& context, std::string_view part, int64_t layer, const Var& residual,
                    const Var& in) {
  if (!context.observe) return;
  context.observe(std::string(part) + "_residual", layer, residual.view());
  context.observe(std::string(part) + "_input", layer, in.view());
}

}  // namespace

DropoutMask DropoutPlan::mask(uint32_t site, int64_t width) const {
  return {
      .key = seed, .stream = stream_of(Stream::kDropout, site), .first = first_of(pass), .full_width = width, .p = p};
}

RouterJitter DropoutPlan::jitter(uint32_t site, float epsilon) const {
  return {.key = seed, .stream = stream_of(Stream::kJitter, site), .first = first_of(pass), .epsilon = epsilon};
}

Block::Block(const LayerSpec& spec, const Parameters& parameters, const std::string& prefix, int64_t layer,
             uint32_t first_site, const Position& position)
    : placement_(spec.placement),
      form_(spec.block.form),
      layer_(layer),
      first_site_(first_site),
      attention_(build_attention({spec, parameters, prefix + "attention.", layer, position})),
      attention_norms_(norms(spec, parameters, prefix + "attention")),
      ffn_norms_(norms(spec, parameters, prefix + "ffn")),
      ffn_(build_ffn({spec, parameters, prefix + "ffn.", first_site + static_cast<uint32_t>(spec.sublayers()) - 1})) {
  if (spec.cross_attention) {
    cross_attention_ = build_cross_attention({spec, parameters, prefix + "cross_attention.", layer, position});
    cross_attention_norms_ = norms(spec, parameters, prefix + "cross_attention");
  }
}

Block::Norms Block::norms(const LayerSpec& spec, const Parameters& parameters, const std::string& name) const {
  const auto make = [&](const std::string& suffix) {
    return std::make_unique<Norm>(spec.norm, parameters, name + suffix);
  };
  switch (placement_) {
    case NormPlacement::kPre:
      return {make("_norm."), nullptr};
    case NormPlacement::kPost:
    case NormPlacement::kPostSublayer:
      return {nullptr, make("_norm.")};
    case NormPlacement::kSandwich:
      return {make("_norm."), make("_post_norm.")};
  }
  return {};
}

template <class F>
Var Block::sublayer(const ForwardContext& context, const Var& x, const Norms& norms, uint32_t site, const char* part,
                    const F& f) const {
  // Where a norm stands between the sublayer and the sum, the residual joins after it.
  const bool joins_in_projection = placement_ == NormPlacement::kPre || placement_ == NormPlacement::kPost;
  const LinearEnd end{
      .bias = {}, .dropout = context.dropout.mask(site, x.width), .residual = joins_in_projection ? &x : nullptr};
  Var in = norms.before ? norms.before->forward(context.op, x) : x;
  observe_inputs(context, part, layer_, x, in);
  Var y = f(in, end);
  in = {};
  if (norms.after) y = norms.after->forward(context.op, y);
  if (!joins_in_projection) add_in_place(context.op, y, x);
  if (context.observe) context.observe(part, layer_, y.view());
  return y;
}

Var Block::parallel(const ForwardContext& context, const Var& x) const {
  Var attention_in = attention_norms_.before->forward(context.op, x);
  observe_inputs(context, "attention", layer_, x, attention_in);
  Var ffn_in = form_ == BlockForm::kParallel ? attention_in : ffn_norms_.before->forward(context.op, x);
  const Var mid = attention_->forward(
      context, attention_in, {.bias = {}, .dropout = context.dropout.mask(first_site_, x.width), .residual = &x});
  attention_in = {};
  if (context.observe) context.observe("attention", layer_, mid.view());
  const auto feed_forward = [this](const ForwardContext& c, const Var& in, const Var& residual) {
    return ffn_->forward(c, in,
                         {.bias = {}, .dropout = c.dropout.mask(first_site_ + 1, in.width), .residual = &residual});
  };
  if (context.recompute_ffn) {
    return recompute(context.op, ffn_in,
                     [feed_forward, mid, kept = KeptContext(context)](const OpContext& op, const Var& in) {
                       return feed_forward(kept.at(op), in, mid);
                     });
  }
  Var out = feed_forward(context, ffn_in, mid);
  if (context.observe) context.observe("ffn", layer_, out.view());
  return out;
}

Var Block::forward(const ForwardContext& context, const Var& x) const {
  if (form_ != BlockForm::kSequential) return parallel(context, x);
  uint32_t site = first_site_;
  const auto attend = [&](const Attention& attention) {
    return [&](const Var& in, const LinearEnd& end) { return attention.forward(context, in, end); };
  };
  Var y = sublayer(context, x, attention_norms_, site++, "attention", attend(*attention_));
  if (cross_attention_) {
    if (context.observe && context.source)
      context.observe("cross_attention_source", layer_, context.source->hidden.view());
    y = sublayer(context, y, cross_attention_norms_, site++, "cross_attention", attend(*cross_attention_));
  }
  const auto feed_forward = [this, site](const ForwardContext& c, const Var& residual) {
    return sublayer(c, residual, ffn_norms_, site, "ffn",
                    [&](const Var& in, const LinearEnd& end) { return ffn_->forward(c, in, end); });
  };
  if (!context.recompute_ffn) return feed_forward(context, y);
  return recompute(context.op, y, [feed_forward, kept = KeptContext(context)](const OpContext& op, const Var& in) {
    return feed_forward(kept.at(op), in);
  });
}

}  // namespace transept
