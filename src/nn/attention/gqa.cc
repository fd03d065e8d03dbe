// Grouped-query self-attention (arXiv:2305.13245; with as many KV heads as heads, arXiv:1706.03762 section 3.2): one
// fused projection to queries, keys and values, their norm and rotation in place, attention over the cache and the new
// rows, output projection.
#include "nn/attention/gqa_parts.h"

namespace transept {
namespace {

class Gqa final : public Attention {
 public:
  Gqa(const GqaSpec& spec, const AttentionPlace& place)
      : spec_(spec),
        parts_(spec, place),
        position_(place.position),
        layer_(place.layer),
        causal_(place.layer_spec.causal),
        qkv_(place.parameters.param(place.prefix + "qkv.weight")),
        qkv_bias_(place.parameters.param(place.prefix + "qkv.bias")) {}

  Var forward(const ForwardContext& context, const Var& x, LinearEnd end) const override {
    Var qkv = linear(context.op, x, qkv_, {.bias = qkv_bias_, .dropout = {}, .residual = nullptr});
    parts_.clip(context.op, qkv);
    if (const auto norms = parts_.qk_norms(0, spec_.query_width()); !norms.empty())
      normalize_heads_in_place(context.op, qkv, norms);
    rotate(context, qkv);
    const AttentionInputs inputs{qkv, 0, qkv, spec_.query_width(), spec_.query_width() + spec_.kv_width()};
    const AttentionShape shape = parts_.shape(causal_, spec_.sliding_window);
    const ScoreBias bias = position_.score_bias(shape.heads, shape.kv_heads, causal_, context.positions);
    if (context.observe_scores) context.observe_scores(layer_, {inputs, shape, bias, parts_.sinks()});
    const auto attend = [&](const CachedKeys& cached) {
      return attention(context.op, inputs, shape, bias, parts_.sinks(), context.layout, context.layout, cached);
    };
    const Var heads = context.cache ? attend_cached(context, qkv, attend) : attend({});
    qkv = {};
    return parts_.project(context.op, heads, end);
  }

 private:
  void rotate(const ForwardContext& context, const Var& qkv) const {
    std::vector<std::shared_ptr<const RotationTable>> tables;
    for (const int64_t length : context.lengths)
      tables.push_back(position_.rotation(context.positions, spec_.head_dim, length));
    if (tables.front()) {
      rotate_in_place(context.op, qkv, 0, context.layout, spec_.num_attention_heads + spec_.num_key_value_heads,
                      spec_.head_dim, tables);
    }
  }

  // A record of the cache is a token's keys and values, as they lie in qkv.
  Var attend_cached(const ForwardContext& context, const Var& qkv, const auto& attend) const {
    const auto view = [&](size_t s) -> KvView& { return context.cache->view(static_cast<int64_t>(s), layer_); };
    std::vector<std::vector<KvChunk>> cached;
    for (size_t s = 0; s < context.layout.size(); ++s) cached.push_back(cached_chunks(view(s), spec_.kv_width()));
    const Var heads = attend([&](int64_t s) { return std::span<const KvChunk>(cached[static_cast<size_t>(s)]); });
    for (size_t s = 0; s < context.layout.size(); ++s) {
      const SequenceRows& rows = context.layout[s];
      view(s).append(
          {qkv.view().row(rows.first_row) + spec_.query_width(), rows.rows, 2 * spec_.kv_width(), qkv.width});
    }
    return heads;
  }

  GqaSpec spec_;
  GqaParts parts_;
  const Position& position_;
  int64_t layer_;
  bool causal_;
  Param qkv_, qkv_bias_;
};

}  // namespace

std::unique_ptr<Attention> build(const GqaSpec& spec, const AttentionPlace& place) {
  return std::make_unique<Gqa>(spec, place);
}

}  // namespace transept
