// The terms of plan/activations.h.
#include "plan/activations.h"

#include <algorithm>

#include "tensor/logit_rows.h"

namespace transept {
namespace {

constexpr int64_t kFloat = 4;  // bytes of an activation when a model is run

// Elements a token.
struct AttentionWidths {
  int64_t query, kv;  // of cross-attention
  int64_t in;         // kept of queries, keys and values, and of the latents that they are made from
  int64_t out, heads;
  int64_t qk_norm;    // kept by the norms of queries and keys, or of latents
  int64_t gradients;  // made by the backward pass beside that of `out`
  int64_t inference;  // made by a pass without gradients
  int64_t expanded;   // made of each cached token in such a pass
};
AttentionWidths widths(const GqaSpec& a) {
  int64_t kept = 0;
  if (a.qk_norm != QkNorm::kNone) {
    const bool together = a.qk_norm_scope == QkNormScope::kAllHeads;
    const int64_t statistics = a.qk_norm == QkNorm::kLayernorm ? 2 : 1;
    kept = a.query_width() + a.kv_width() + statistics * (together ? 2 : a.num_attention_heads + a.num_key_value_heads);
  }
  return {a.query_width(),
          a.kv_width(),
          a.qkv_width(),
          a.query_width(),
          a.num_attention_heads,
          kept,
          a.qkv_width() + kept,
          a.qkv_width() + a.query_width(),
          0};
}
AttentionWidths widths(const MlaSpec& a) {
  const int64_t q_norm = a.q_lora_rank > 0 ? a.q_lora_rank + 1 : 0, latents = a.num_attention_heads * a.kv_lora_rank;
  return {
      0,
      0,
      a.query_width() + a.q_lora_rank + a.record_width() + a.expanded_width(),
      a.value_width(),
      a.num_attention_heads,
      a.kv_lora_rank + 1 + q_norm,
      a.query_width() + a.expanded_width(),
      a.query_width() + a.record_width() + a.value_width() + std::max(a.expanded_width(), a.absorbed_width() + latents),
      a.expanded_width()};
}
AttentionWidths widths(const AttentionSpec& any) {
  return std::visit([](const auto& a) { return widths(a); }, any);
}

// Elements of the feed-forward sublayer a token.
struct FfnWidths {
  Count saved;     // see LayerSaved::ffn_first
  Count forward;   // needed for a moment on top, beside the result
  Count backward;  // as well, beside the gradients of result and input, or with the latter
};
FfnWidths ffn_widths(const ArchSpec& spec, const LayerSpec& layer) {
  const MoeSpec& moe = layer.moe;
  if (!moe) {
    const Count activation = layer.ffn.intermediate_size;
    return {layer.ffn.in_width(), activation, std::max(activation, Count(spec.hidden_size))};
  }
  // Rows gathered by expert stand beside the activation; the experts' results, or what flows back to the rows, take
  // their place.
  const FfnSpec one = moe.expert(layer.ffn);
  const Count chosen = moe.num_experts_per_tok, hidden = spec.hidden_size;
  FfnWidths w{chosen * one.in_width() + moe.num_experts, chosen * (hidden + one.intermediate_size),
              std::max(chosen * (hidden + one.intermediate_size), chosen * hidden + hidden)};
  if (moe.has_shared()) {
    w.saved += moe.shared(layer.ffn).in_width();
    w.forward += hidden;
    if (moe.shared_expert_gate) w.saved += hidden + 1;
  }
  return w;
}

int64_t statistics(const NormSpec& norm) {
  return std::visit([](const auto& n) { return n.saved_per_row(); }, norm);
}

bool norm_before(const LayerSpec& layer) {
  return layer.placement == NormPlacement::kPre || layer.placement == NormPlacement::kSandwich;
}

}  // namespace

Count LayerSaved::total() const {
  return residual_in + attention_input + qkv + qk_norm + attention_output + log_sum_exp + cross_attention +
         residual_middle + ffn_input + ffn_first + post_norm_inputs + norm_statistics;
}

// Where the norm follows the sublayer, the names shift and the sizes stay: the attention reads the residual itself, and
// each norm's input is kept in place of its output.
LayerSaved layer_saved(const ArchSpec& spec, const LayerSpec& layer, const TokenRows& rows) {
  const AttentionWidths a = widths(layer.attention);
  const Count n = rows.own, hidden = n * spec.hidden_size, none;
  const bool parallel = layer.block.parallel(), shared_norm = layer.block.form == BlockForm::kParallel;
  const bool sandwich = layer.placement == NormPlacement::kSandwich;
  const int64_t sublayers = layer.sublayers();
  const int64_t norms = shared_norm ? 1 : sandwich ? 2 * sublayers : sublayers;
  LayerSaved saved{.residual_in = hidden,
                   .attention_input = hidden,
                   .qkv = n * a.in,
                   .qk_norm = n * a.qk_norm,
                   .attention_output = n * a.out,
                   .log_sum_exp = n * a.heads,
                   .cross_attention = none,
                   .residual_middle = parallel ? none : hidden,  // parallel: nothing reads it
                   .ffn_input = shared_norm ? none : hidden,
                   .ffn_first = n * ffn_widths(spec, layer).saved,
                   .post_norm_inputs = sandwich ? hidden * sublayers : none,
                   .norm_statistics = n * (norms * statistics(layer.norm))};
  if (layer.cross_attention) {
    saved.cross_attention = hidden + hidden + n * (2 * a.query + a.heads + a.qk_norm) + rows.source * (2 * a.kv);
  }
  return saved;
}

Count layer_kept(const ArchSpec& spec, const LayerSpec& layer, const TokenRows& rows, Recompute recompute) {
  LayerSaved kept = layer_saved(spec, layer, rows);
  if (recompute == Recompute::kNone) return kept.total();
  if (recompute == Recompute::kFull) return kept.residual_in;
  kept.ffn_first = Count();
  if (layer.block.parallel()) return kept.total();                            // its input stands beside attention's
  const int64_t norms = layer.placement == NormPlacement::kSandwich ? 2 : 1;  // of a sublayer
  kept.ffn_input = Count();
  kept.norm_statistics = rows.own * (statistics(layer.norm) * norms * (layer.sublayers() - 1));
  if (norms == 2) kept.post_norm_inputs = rows.own * spec.hidden_size * (layer.sublayers() - 1);
  return kept.total();
}

Count layer_peak(const ArchSpec& spec, const LayerSpec& layer, const TokenRows& rows, Recompute recompute) {
  const bool before = norm_before(layer), parallel = layer.block.parallel();
  const bool sandwich = layer.placement == NormPlacement::kSandwich;
  const AttentionWidths a = widths(layer.attention);
  LayerSaved s = layer_saved(spec, layer, rows);
  const Count none, gradient = rows.own * spec.hidden_size;
  if (parallel && recompute == Recompute::kSelective) s.residual_middle = gradient;
  const FfnWidths widest = ffn_widths(spec, layer);
  const Count ffn_forward = rows.own * widest.forward, ffn_backward = rows.own * widest.backward;
  const Count statistics_of_one = rows.own * statistics(layer.norm);
  // Dropout's backward pass masks a copy: the residual still needs the gradient as it is.
  const Count masked = spec.dropout > 0 ? gradient : none;
  const Count standing_attention = s.residual_in + (before ? s.attention_input + statistics_of_one : none) + s.qkv +
                                   s.qk_norm + s.attention_output + s.log_sum_exp;
  // A norm after the sublayer is through, and gave back its input; those of the sublayers before stand.
  const Count second_norm = sandwich ? gradient + statistics_of_one : none;
  const Count standing_cross = standing_attention + s.cross_attention + (layer.cross_attention ? second_norm : none);
  const Count standing_ffn = standing_cross + second_norm + s.residual_middle + s.ffn_first + statistics_of_one +
                             (before ? s.ffn_input : s.attention_input);
  // Where the residual joins after a norm, its gradient waits beside that of the sublayer's output.
  const Count outside = sandwich || layer.placement == NormPlacement::kPostSublayer ? gradient : none;

  // The gradient of ffn_first takes its place. The activation made again is gone when the gradient of the input comes.
  const Count ffn = standing_ffn + gradient + outside + masked + ffn_backward;
  // Gradients of the residual (and, parallel, of the norm that both read), of attention_output and of qkv.
  const Count attention =
      standing_attention + gradient + (parallel ? gradient : outside) + s.attention_output + rows.own * a.gradients;
  Count peak = std::max(ffn, attention);
  if (layer.cross_attention) {
    peak = std::max(peak, standing_cross + gradient + outside + rows.own * (2 * a.query) + rows.source * (2 * a.kv) +
                              rows.source * spec.hidden_size);
  }
  if (!before || sandwich) peak = std::max(peak, s.total() + gradient + gradient);  // the last norm's output and input
  // The forward pass up to the layer's output; parallel: with what attention left, to which the second sublayer is
  // added. When it runs again, the gradient of the output waits.
  const Count forward = s.total() + (parallel && s.residual_middle == none ? gradient : none) +
                        (before && !sandwich ? gradient + ffn_forward : std::max(ffn_forward, gradient));
  peak = std::max(peak, forward + (recompute == Recompute::kNone ? none : gradient));
  return peak;
}

int64_t ActivationBytes::total() const {
  return (Count(saved_layers) + std::max((Count(saved_ends) + head_transient).value(), backward_transient)).value();
}

RunOfLayers run_of_layers(const ArchSpec& spec, std::span<const LayerSpec> layers, const TokenRows& rows,
                          Recompute recompute) {
  RunOfLayers run;
  for (const LayerSpec& layer : layers) {
    run.fullest = std::max(run.fullest, run.kept + layer_peak(spec, layer, rows, recompute));
    run.kept += layer_kept(spec, layer, rows, recompute);
  }
  return run;
}

Count stack_end(const ArchSpec& spec, const StackSpec& stack, Count rows) {
  // Without a final norm the last layer's output is what comes next.
  const Count hidden = rows * spec.hidden_size;
  return stack.has_final_norm() ? hidden + hidden + rows * statistics(stack.final_norm) : hidden;
}

ActivationBytes activation_bytes(const ArchSpec& spec, const ActivationShape& shape) {
  const Count rows = Count(shape.batch) * shape.context, source_rows = Count(shape.batch) * shape.source_context;
  const int64_t element = shape.element_bytes;
  // What a norm on the embeddings reads stands until the end of its stack's backward pass.
  const auto embedding_norm = [&](const StackSpec& stack, Count n) {
    return spec.embedding_norm ? n * spec.hidden_size + n * statistics(stack.final_norm) : Count();
  };
  Count saved, backward;
  const auto add = [&](const StackSpec& stack, const TokenRows& of) {
    saved += embedding_norm(stack, of.own);
    const RunOfLayers run = run_of_layers(spec, stack.layers, of, shape.recompute);
    backward = std::max(backward, saved + run.fullest);
    saved += run.kept;
  };
  if (spec.encoder_decoder()) {
    add(spec.encoder, {source_rows, Count()});
    saved += stack_end(spec, spec.encoder, source_rows);  // every layer of the decoder reads it
  }
  add(spec, {rows, source_rows});
  Count ends = stack_end(spec, spec, rows);
  // The head's own layer: its product, its activation, and the norm's output and statistics.
  if (spec.head_transform) ends += rows * (3 * spec.hidden_size + statistics(spec.final_norm));
  const Count chunk = Count(std::min(rows.value(), logit_rows(spec.vocab_size))) * spec.vocab_size;
  return {.saved_layers = (saved * element).value(),
          .saved_ends = (ends * element).value(),
          .head_transient = (chunk * kLogitBytes + rows * spec.hidden_size * element).value(),
          .backward_transient = std::max<int64_t>(0, (backward * element).value() - (saved * element).value())};
}

int64_t inference_bytes(const ArchSpec& spec, int64_t rows, int64_t logit_rows, int64_t cached) {
  Count widest;  // a row
  int64_t expanded = 0;
  for (const StackSpec* stack : {static_cast<const StackSpec*>(&spec), &spec.encoder}) {
    for (const LayerSpec& layer : stack->layers) {
      const AttentionWidths a = widths(layer.attention);
      const Count attention(a.inference);
      if (layer.causal) expanded = std::max(expanded, a.expanded);
      const FfnWidths of_ffn = ffn_widths(spec, layer);
      const Count ffn = of_ffn.saved + of_ffn.forward;
      // Parallel: the norm's output stays for the second sublayer.
      const Count kept(layer.block.parallel() ? spec.hidden_size : 0);
      widest = std::max(widest, std::max(attention + kept, ffn));
    }
  }
  const Count row =
      Count(spec.hidden_size) + spec.hidden_size + widest;  // residual, its normalized form, and one sublayer
  return ((Count(rows) * row + Count(cached) * expanded + Count(logit_rows) * spec.vocab_size) * kFloat).value();
}

}  // namespace transept
