#include "nn/attention/gqa_parts.h"

#include "ops/clamp.h"

namespace transept {
namespace {

// Kernels know no spec, and the spec knows no kernels.
HeadNormScope scope_of(QkNormScope scope) {
  switch (scope) {
    case QkNormScope::kHead:
      return HeadNormScope::kHead;
    case QkNormScope::kEachHead:
      return HeadNormScope::kEachHead;
    case QkNormScope::kAllHeads:
      return HeadNormScope::kAllHeads;
  }
  return HeadNormScope::kHead;
}

}  // namespace

GqaParts::GqaParts(const GqaSpec& spec, const AttentionPlace& place)
    : spec_(spec),
      norm_eps_(static_cast<float>(norm_eps(place.layer_spec.norm))),
      norm_offset_(spec.qk_norm == QkNorm::kRmsnorm ? static_cast<float>(norm_offset(place.layer_spec.norm)) : 0),
      q_norm_(place.parameters.param(place.prefix + "q_norm.weight")),
      k_norm_(place.parameters.param(place.prefix + "k_norm.weight")),
      sinks_(place.parameters.param(place.prefix + "sinks")),
      output_(place.parameters.param(place.prefix + "output.weight")),
      output_bias_(place.parameters.param(place.prefix + "output.bias")) {}

AttentionShape GqaParts::shape(bool causal, int64_t window) const {
  AttentionShape shape;
  shape.heads = spec_.num_attention_heads;
  shape.kv_heads = spec_.num_key_value_heads;
  shape.head_dim = spec_.head_dim;
  shape.scale = static_cast<float>(spec_.score_scale());
  shape.causal = causal;
  shape.window = window;
  shape.softcap = static_cast<float>(spec_.logit_softcap);
  return shape;
}

std::vector<HeadNorm> GqaParts::qk_norms(int64_t query_column, int64_t key_column) const {
  std::vector<HeadNorm> parts;
  if (spec_.qk_norm == QkNorm::kNone) return parts;
  const HeadNormKind kind = spec_.qk_norm == QkNorm::kRmsnorm ? HeadNormKind::kRms : HeadNormKind::kLayer;
  const auto add = [&](int64_t column, int64_t heads, const Param& weight) {
    if (column >= 0)
      parts.push_back(
          {column, heads, spec_.head_dim, kind, scope_of(spec_.qk_norm_scope), weight, norm_offset_, norm_eps_});
  };
  add(query_column, spec_.num_attention_heads, q_norm_);
  add(key_column, spec_.num_key_value_heads, k_norm_);
  return parts;
}

void GqaParts::clip(const OpContext& op, const Var& x) const {
  if (spec_.clip_qkv > 0) clamp_in_place(op, x, static_cast<float>(spec_.clip_qkv));
}

Var GqaParts::project(const OpContext& op, const Var& heads, LinearEnd end) const {
  end.bias = output_bias_;
  return linear(op, heads, output_, end);
}

std::vector<KvChunk> cached_chunks(KvView& view, int64_t kv_width) {
  std::vector<KvChunk> chunks;
  for (const RecordChunk& c : view.chunks())
    chunks.push_back({c.data, c.data + kv_width, c.stride, c.rows, c.first_position});
  return chunks;
}

}  // namespace transept
