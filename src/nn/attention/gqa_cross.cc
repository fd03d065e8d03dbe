// Attention of a decoder to its encoder's result (arXiv:1706.03762 section 3.2.3): queries from the decoder, keys and
// values from the encoder, every query sees the whole source, no positions. With a cache, keys and values are made once
// and kept for the whole target.
#include "base/check.h"
#include "nn/attention/gqa_parts.h"

namespace transept {
namespace {

class GqaCross final : public Attention {
 public:
  GqaCross(const GqaSpec& spec, const AttentionPlace& place)
      : spec_(spec),
        parts_(spec, place),
        layer_(place.layer),
        q_(place.parameters.param(place.prefix + "q.weight")),
        q_bias_(place.parameters.param(place.prefix + "q.bias")),
        kv_(place.parameters.param(place.prefix + "kv.weight")),
        kv_bias_(place.parameters.param(place.prefix + "kv.bias")) {}

  Var forward(const ForwardContext& context, const Var& x, LinearEnd end) const override {
    Var q = linear(context.op, x, q_, {.bias = q_bias_, .dropout = {}, .residual = nullptr});
    parts_.clip(context.op, q);
    if (const auto norms = parts_.qk_norms(0, -1); !norms.empty()) normalize_heads_in_place(context.op, q, norms);
    Var kv;
    if (context.source) {
      kv = linear(context.op, context.source->hidden, kv_, {.bias = kv_bias_, .dropout = {}, .residual = nullptr});
      parts_.clip(context.op, kv);
      if (const auto norms = parts_.qk_norms(-1, 0); !norms.empty()) normalize_heads_in_place(context.op, kv, norms);
    }
    const Var heads =
        context.cache ? attend_cached(context, q, kv) : attend(context, q, kv, source_layout(context), {});
    q = {};
    kv = {};
    return parts_.project(context.op, heads, end);
  }

 private:
  static const BatchLayout& source_layout(const ForwardContext& context) {
    TRANSEPT_CHECK(context.source);
    return context.source->layout;
  }

  Var attend(const ForwardContext& context, const Var& q, const Var& kv, const BatchLayout& keys,
             const CachedKeys& cached) const {
    const AttentionInputs inputs{q, 0, kv, 0, spec_.kv_width()};
    return attention(context.op, inputs, parts_.shape(false, 0), {}, parts_.sinks(), context.layout, keys, cached);
  }

  Var attend_cached(const ForwardContext& context, const Var& q, const Var& kv) const {
    const auto view = [&](size_t s) -> KvView& { return context.cache->source_view(static_cast<int64_t>(s), layer_); };
    std::vector<std::vector<KvChunk>> cached;
    BatchLayout nothing_new;
    for (size_t s = 0; s < context.layout.size(); ++s) {
      if (context.source) {
        const SequenceRows& rows = context.source->layout[s];
        view(s).append({kv.view().row(rows.first_row), rows.rows, kv.width, kv.width});
      }
      cached.push_back(cached_chunks(view(s), spec_.kv_width()));
      nothing_new.push_back({0, 0, 0});
    }
    return attend(context, q, {}, nothing_new,
                  [&](int64_t s) { return std::span<const KvChunk>(cached[static_cast<size_t>(s)]); });
  }

  GqaSpec spec_;
  GqaParts parts_;
  int64_t layer_;
  Param q_, q_bias_, kv_, kv_bias_;
};

}  // namespace

std::unique_ptr<Attention> build_cross(const GqaSpec& spec, const AttentionPlace& place) {
  return std::make_unique<GqaCross>(spec, place);
}

}  // namespace transept
