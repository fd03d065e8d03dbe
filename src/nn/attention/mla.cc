// Multi-head latent attention (arXiv:2405.04434 section 2.1): see spec/attention.h for the formulas. The cache keeps a
// token's record, its normalized latent and the key that turns. Attention reads it in one of two forms (ops/latent.h):
// expanded, as keys and values of every head, or absorbed, as it is.
#include <algorithm>

#include "nn/attention/attention.h"
#include "nn/norm/norm.h"
#include "ops/attention.h"
#include "ops/latent.h"

namespace transept {
namespace {

// What a multiply-add of the expanded form costs beside one of the absorbed form, which has long rows and one key for
// all heads. Measured on one core (Zen 5) at DeepSeek-V2-Lite's sizes with 2,048 cached tokens, ms of a pass by its new
// tokens, the least of ten (transept bench prefill bench-mla --cached 2048 --tokens N --latents absorbed --threads 1):
//   new tokens       128  192  256  320
//   absorbed          62   96  124  163
//   expanded          84  130  116  136
// By count alone the forms would meet at 164 new tokens; they do between 192 and 256.
constexpr double kExpandedCost = 1.25;

class Mla final : public Attention {
 public:
  Mla(const MlaSpec& spec, const AttentionPlace& place)
      : heads_{spec.num_attention_heads, spec.kv_lora_rank, spec.qk_nope_head_dim, spec.qk_rope_head_dim,
               spec.v_head_dim},
        position_(place.position),
        layer_(place.layer) {
    const auto param = [&](const char* name) { return place.parameters.param(place.prefix + name); };
    q_ = param("q.weight"), q_down_ = param("q_down.weight"), q_down_bias_ = param("q_down.bias");
    q_norm_ = param("q_norm.weight"), q_up_ = param("q_up.weight");
    kv_down_ = param("kv_down.weight"), kv_down_bias_ = param("kv_down.bias");
    kv_norm_ = param("kv_norm.weight"), kv_up_ = param("kv_up.weight");
    output_ = param("output.weight"), output_bias_ = param("output.bias");
    norm_.weight_offset = static_cast<float>(norm_offset(place.layer_spec.norm));
    norm_.eps = static_cast<float>(norm_eps(place.layer_spec.norm));
    shape_.heads = shape_.kv_heads = heads_.heads;
    shape_.head_dim = heads_.key();
    shape_.value_dim = heads_.value;
    shape_.scale = static_cast<float>(spec.score_scale() * position_.score_factor(heads_.rope));
    shape_.causal = place.layer_spec.causal;
    shape_.window = spec.sliding_window;
  }

  Var forward(const ForwardContext& context, const Var& x, LinearEnd end) const override {
    Var q = queries(context.op, x);
    Var records = linear(context.op, x, kv_down_, {.bias = kv_down_bias_, .dropout = {}, .residual = nullptr});
    normalize(context.op, records, heads_.rank, kv_norm_);
    rotate(context, q, records);
    const Var heads = context.cache ? attend_cached(context, q, records) : attend_expanded(context, q, records, {});
    q = {};
    records = {};
    end.bias = output_bias_;
    return linear(context.op, heads, output_, end);
  }

 private:
  using Records = std::vector<std::vector<RecordChunk>>;  // of each sequence

  // The first `width` elements of each row, in place.
  void normalize(const OpContext& op, const Var& x, int64_t width, const Param& weight) const {
    HeadNorm norm = norm_;
    norm.heads = 1;
    norm.head_dim = width;
    norm.weight = weight;
    normalize_heads_in_place(op, x, {&norm, 1});
  }

  Var queries(const OpContext& op, const Var& x) const {
    if (q_) return linear(op, x, q_);
    const Var latent = linear(op, x, q_down_, {.bias = q_down_bias_, .dropout = {}, .residual = nullptr});
    normalize(op, latent, latent.width, q_norm_);
    return linear(op, latent, q_up_);
  }

  void rotate(const ForwardContext& context, const Var& q, const Var& records) const {
    std::vector<std::shared_ptr<const RotationTable>> tables;
    for (const int64_t length : context.lengths)
      tables.push_back(position_.rotation(context.positions, heads_.rope, length));
    if (!tables.front()) return;
    rotate_in_place(context.op, q, heads_.nope, context.layout, heads_.heads, heads_.key(), tables);
    rotate_in_place(context.op, records, heads_.rank, context.layout, 1, heads_.rope, tables);
  }

  Var attend(const ForwardContext& context, const AttentionInputs& inputs, const AttentionShape& shape,
             const CachedKeys& cached) const {
    const ScoreBias bias = position_.score_bias(shape.heads, shape.kv_heads, shape.causal, context.positions);
    if (context.observe_scores) context.observe_scores(layer_, {inputs, shape, bias, {}});
    return attention(context.op, inputs, shape, bias, {}, context.layout, context.layout, cached);
  }

  Var attend_expanded(const ForwardContext& context, const Var& q, const Var& records, const Records& cached) const {
    std::vector<Buffer> expanded;
    std::vector<std::vector<KvChunk>> keys(cached.size());
    const int64_t width = heads_.keys() + heads_.values();
    for (size_t s = 0; s < cached.size(); ++s) {
      for (const RecordChunk& c : cached[s]) {
        const float* const k = expanded.emplace_back(context.op.arena, c.rows * width).data();
        expand_records(context.op.pool, {c.data, c.rows, heads_.record(), c.stride}, kv_up_, heads_,
                       {expanded.back().data(), c.rows, width, width});
        keys[s].push_back({k, k + heads_.keys(), width, c.rows, c.first_position});
      }
    }
    const Var kv = expand_records(context.op, records, kv_up_, heads_);
    return attend(context, {q, 0, kv, 0, heads_.keys()}, shape_, cached_keys(keys));
  }

  // One KV head, of which the latent is the value.
  Var attend_absorbed(const ForwardContext& context, const Var& q, const Var& records, const Records& cached) const {
    AttentionShape shape = shape_;
    shape.kv_heads = 1;
    shape.head_dim = heads_.record();
    shape.value_dim = heads_.rank;
    std::vector<std::vector<KvChunk>> keys(cached.size());
    for (size_t s = 0; s < cached.size(); ++s) {
      for (const RecordChunk& c : cached[s]) keys[s].push_back({c.data, c.data, c.stride, c.rows, c.first_position});
    }
    const Var absorbed = absorb_queries(context.op, q, kv_up_, heads_);
    const Var latents = attend(context, {absorbed, 0, records, 0, 0}, shape, cached_keys(keys));
    return values_of_latents(context.op, latents, kv_up_, heads_);
  }

  static CachedKeys cached_keys(const std::vector<std::vector<KvChunk>>& keys) {
    if (keys.empty()) return {};
    return [&keys](int64_t s) { return std::span<const KvChunk>(keys[static_cast<size_t>(s)]); };
  }

  Var attend_cached(const ForwardContext& context, const Var& q, const Var& records) const {
    const auto view = [&](size_t s) -> KvView& { return context.cache->view(static_cast<int64_t>(s), layer_); };
    Records cached;
    for (size_t s = 0; s < context.layout.size(); ++s) {
      const auto chunks = view(s).chunks();
      cached.emplace_back(chunks.begin(), chunks.end());
    }
    const bool absorbed = context.latents == LatentForm::kCheaper ? absorbed_is_cheaper(context.layout, cached)
                                                                  : context.latents == LatentForm::kAbsorbed;
    const Var heads =
        absorbed ? attend_absorbed(context, q, records, cached) : attend_expanded(context, q, records, cached);
    for (size_t s = 0; s < context.layout.size(); ++s) {
      const SequenceRows& rows = context.layout[s];
      view(s).append({records.view().row(rows.first_row), rows.rows, records.width, records.width});
    }
    return heads;
  }

  // Absorbed, a score and its value cost 2 rank + rope multiply-adds in place of nope + rope + value; expanded, each
  // cached record costs rank (nope + value). What either does with the new rows' own products is the same.
  bool absorbed_is_cheaper(const BatchLayout& layout, const Records& cached) const {
    double pairs = 0, held = 0;
    for (size_t s = 0; s < layout.size(); ++s) {
      const double rows = static_cast<double>(layout[s].rows);
      double before = 0;
      for (const RecordChunk& c : cached[s]) before += static_cast<double>(c.rows);
      held += before;
      pairs += rows * (before + (rows + 1) / 2);
    }
    const double absorbed = pairs * static_cast<double>(heads_.rank + heads_.record());
    const double expanded = pairs * static_cast<double>(heads_.key() + heads_.value) +
                            held * static_cast<double>(heads_.rank * (heads_.nope + heads_.value));
    return absorbed < kExpandedCost * expanded;
  }

  LatentHeads heads_;
  const Position& position_;
  int64_t layer_;
  AttentionShape shape_;  // expanded
  HeadNorm norm_;         // what all norms of latents share
  Param q_, q_down_, q_down_bias_, q_norm_, q_up_, kv_down_, kv_down_bias_, kv_norm_, kv_up_, output_, output_bias_;
};

}  // namespace

std::unique_ptr<Attention> build(const MlaSpec& spec, const AttentionPlace& place) {
  return std::make_unique<Mla>(spec, place);
}

}  // namespace transept
