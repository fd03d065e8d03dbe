#include "plan/flops.h"

#include "plan/count.h"

namespace transept {
namespace {

double per_query_key(const LayerSpec& layer) {
  return std::visit([](const auto& a) { return static_cast<double>(a.flops_per_query_key()); }, layer.attention);
}

// Recomputation runs whole layers again, or their feed-forward sublayers; the head and the embeddings never.
double recomputed(const ArchSpec& spec, const FlopCounts& f, Recompute recompute) {
  if (recompute == Recompute::kNone) return 0;
  Count again;
  for (const ParamDecl& decl : spec.declare().decls()) {
    const bool runs = recompute == Recompute::kFull ? decl.layer >= 0 : decl.part == Part::kFfn;
    if (runs && decl.shape.size() == 2) again += elements(decl).value() / decl.experts * decl.active_experts;
  }
  const double attention = recompute == Recompute::kFull ? f.attention_forward_per_token : 0;
  return 2 * static_cast<double>(again.value()) + attention;
}

std::vector<FlopConvention> conventions(const ParameterCounts& p, const FlopCounts& f) {
  const double linear = static_cast<double>(f.linear_forward_per_token);
  const double active = static_cast<double>(p.active);
  const double without_embedding = static_cast<double>(p.active - p.embedding);
  const double full = 3 * f.attention_forward_per_token_full;
  return {
      {"causal", "3 x (linear + attention over the keys that are seen)", "the planner's own", f.train_per_token},
      {"unmasked", "3 x (linear + attention over all T keys)", "MaxText", 3 * linear + full},
      {"linear", "6 x matrices, attention left out", "arXiv:2001.08361, section 2.1", 3 * linear},
      {"6n", "6 N, N: all active parameters", "arXiv:2203.15556, appendix F", 6 * active},
      {"palm", "6 N + 12 L H Q T, N: all active parameters", "arXiv:2204.02311, appendix B", 6 * active + full},
      {"palm_without_embedding", "6 N + 12 L H Q T, N: active parameters but the embedding table",
       "torchtitan, nanoGPT", 6 * without_embedding + full},
      {"hardware", "causal + what recomputation runs again", "arXiv:2205.05198, section 6.3",
       f.train_per_token + f.recompute_per_token},
  };
}

}  // namespace

// With w = min(window, T) keys at the most on one side, itself included: causal, the mean over t = 1..T of min(t, w);
// bidirectional, both sides, itself counted once.
double mean_attended(const LayerSpec& layer, int64_t context) {
  const double w = static_cast<double>(cached_tokens(window_of(layer), context)), t = static_cast<double>(context);
  const double one_side = (w * (w + 1) / 2 + (t - w) * w) / t;
  return layer.causal ? one_side : 2 * one_side - 1;
}

FlopCounts count_flops(const ArchSpec& spec, const ParameterCounts& parameters, int64_t context, int64_t source_context,
                       Recompute recompute) {
  FlopCounts f;
  f.linear_forward_per_token = (Count(2) * parameters.matrices).value();
  const double t = static_cast<double>(context), source = static_cast<double>(source_context);
  for (const LayerSpec& layer : spec.layers) {
    const double crossed = layer.cross_attention ? source : 0;
    f.attention_forward_per_token += per_query_key(layer) * (mean_attended(layer, context) + crossed);
    f.attention_forward_per_token_full += per_query_key(layer) * (t + crossed);
    if (const auto* mla = std::get_if<MlaSpec>(&layer.attention)) {
      f.absorbed_per_cached_key += mla->flops_per_cached_key();
      f.expanded_per_cached_key += mla->flops_per_query_key();
      f.expansion_per_cached_token += mla->flops_to_expand();
    }
  }
  for (const LayerSpec& layer : spec.encoder.layers) {
    f.attention_forward_per_token += per_query_key(layer) * mean_attended(layer, source_context);
    f.attention_forward_per_token_full += per_query_key(layer) * source;
  }
  f.forward_per_token = static_cast<double>(f.linear_forward_per_token) + f.attention_forward_per_token;
  f.train_per_token = 3 * f.forward_per_token;
  f.recompute_per_token = recomputed(spec, f, recompute);
  f.conventions = conventions(parameters, f);
  return f;
}

}  // namespace transept
