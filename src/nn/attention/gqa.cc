// Grouped-query attention (arXiv:2305.13245; with as many KV heads as heads, arXiv:1706.03762 section 3.2): one fused
// projection to queries, keys and values, rotation in place, attention over the cache and the new rows, output
// projection.
#include <vector>

#include "nn/attention/attention.h"
#include "ops/attention.h"
#include "ops/linear.h"

namespace transept {
namespace {

class Gqa final : public Attention {
 public:
  Gqa(const GqaSpec& spec, const Parameters& parameters, const std::string& prefix, int64_t layer)
      : spec_(spec),
        layer_(layer),
        qkv_(parameters.param(prefix + "qkv.weight")),
        qkv_bias_(parameters.param(prefix + "qkv.bias")),
        output_(parameters.param(prefix + "output.weight")),
        output_bias_(parameters.param(prefix + "output.bias")) {}

  Var forward(const ForwardContext& context, const Var& x, LinearEnd end) const override {
    Var qkv = linear(context.op, x, qkv_, {.bias = qkv_bias_, .dropout = {}, .residual = nullptr});
    if (auto table = context.position.rotation(context.positions, spec_.head_dim)) {
      const std::vector<std::shared_ptr<const RotationTable>> tables(context.layout.size(), std::move(table));
      rotate_in_place(context.op, qkv, 0, context.layout, spec_.num_attention_heads + spec_.num_key_value_heads,
                      spec_.head_dim, tables);
    }
    const AttentionShape shape{spec_.num_attention_heads, spec_.num_key_value_heads, spec_.head_dim,
                               static_cast<float>(spec_.score_scale()), spec_.sliding_window};
    const Var heads =
        context.cache ? attend_cached(context, qkv, shape) : attention(context.op, qkv, shape, context.layout);
    qkv = {};
    end.bias = output_bias_;
    return linear(context.op, heads, output_, end);
  }

 private:
  // A record of the cache is a token's keys and values, as they lie in qkv.
  Var attend_cached(const ForwardContext& context, const Var& qkv, const AttentionShape& shape) const {
    const int64_t kv_width = spec_.kv_width();
    std::vector<std::vector<KvChunk>> cached(context.layout.size());
    for (size_t s = 0; s < context.layout.size(); ++s) {
      for (const RecordChunk& c : context.cache->view(static_cast<int64_t>(s), layer_).chunks()) {
        cached[s].push_back({c.data, c.data + kv_width, c.stride, c.rows, c.first_position});
      }
    }
    const Var heads = attention(context.op, qkv, shape, context.layout,
                                [&](int64_t s) { return std::span<const KvChunk>(cached[static_cast<size_t>(s)]); });
    for (size_t s = 0; s < context.layout.size(); ++s) {
      const SequenceRows& rows = context.layout[s];
      context.cache->view(static_cast<int64_t>(s), layer_)
          .append({qkv.view().row(rows.first_row) + spec_.query_width(), rows.rows, 2 * kv_width, qkv.width});
    }
    return heads;
  }

  GqaSpec spec_;
  int64_t layer_;
  Param qkv_, qkv_bias_, output_, output_bias_;
};

}  // namespace

std::unique_ptr<Attention> build(const GqaSpec& spec, const Parameters& parameters, const std::string& prefix,
                                 int64_t layer) {
  return std::make_unique<Gqa>(spec, parameters, prefix, layer);
}

}  // namespace transept
