// The terms of plan/activations.h.
#include "plan/activations.h"

#include <algorithm>

#include "tensor/logit_rows.h"

namespace transept {
namespace {

constexpr int64_t kFloat = 4;  // bytes

struct AttentionWidths {
  int64_t query, kv, qkv, heads;
  int64_t qk_norm;  // elements that the norm of queries and keys keeps a token
};
AttentionWidths widths(const GqaSpec& a) {
  int64_t kept = 0;
  if (a.qk_norm != QkNorm::kNone) {
    const bool together = a.qk_norm_scope == QkNormScope::kAllHeads;
    const int64_t statistics = a.qk_norm == QkNorm::kLayernorm ? 2 : 1;
    kept = a.query_width() + a.kv_width() + statistics * (together ? 2 : a.num_attention_heads + a.num_key_value_heads);
  }
  return {a.query_width(), a.kv_width(), a.qkv_width(), a.num_attention_heads, kept};
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
                   .qkv = n * a.qkv,
                   .qk_norm = n * a.qk_norm,
                   .attention_output = n * a.query,
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

Count layer_peak(const ArchSpec& spec, const LayerSpec& layer, const TokenRows& rows, bool recompute) {
  const bool before = norm_before(layer), parallel = layer.block.parallel();
  const bool sandwich = layer.placement == NormPlacement::kSandwich;
  const AttentionWidths a = widths(layer.attention);
  const LayerSaved s = layer_saved(spec, layer, rows);
  const Count none, gradient = rows.own * spec.hidden_size;
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
      standing_attention + gradient + (parallel ? gradient : outside) + s.attention_output + s.qkv + s.qk_norm;
  Count peak = std::max(ffn, attention);
  if (layer.cross_attention) {
    peak = std::max(peak, standing_cross + gradient + outside + rows.own * (2 * a.query) + rows.source * (2 * a.kv) +
                              rows.source * spec.hidden_size);
  }
  if (!before || sandwich) peak = std::max(peak, s.total() + gradient + gradient);  // the last norm's output and input
  // The forward pass up to the layer's output; parallel: with what attention left, to which the second sublayer is
  // added. When it runs again, the gradient of the output waits.
  const Count forward = s.total() + (parallel ? gradient : none) +
                        (before && !sandwich ? gradient + ffn_forward : std::max(ffn_forward, gradient));
  peak = std::max(peak, forward + (recompute ? gradient : none));
  return peak;
}

int64_t ActivationBytes::total() const {
  return (Count(saved_layers) + std::max((Count(saved_ends) + head_transient).value(), backward_transient)).value();
}

ActivationBytes activation_bytes(const ArchSpec& spec, int64_t batch, int64_t context, int64_t source_context,
                                 bool recompute) {
  const Count rows = Count(batch) * context, source_rows = Count(batch) * source_context;
  Count saved, backward;
  const auto add = [&](const StackSpec& stack, const TokenRows& of) {
    for (const LayerSpec& layer : stack.layers) {
      backward = std::max(backward, saved + layer_peak(spec, layer, of, recompute));
      const LayerSaved kept = layer_saved(spec, layer, of);
      saved += recompute ? kept.residual_in : kept.total();
    }
  };
  // Without a final norm the last layer's output is what comes next.
  const auto end_of = [&](const StackSpec& stack, Count n) {
    const Count hidden = n * spec.hidden_size;
    return stack.has_final_norm() ? hidden + hidden + n * statistics(stack.final_norm) : hidden;
  };
  // What a norm on the embeddings reads stands until the end of its stack's backward pass.
  const auto embedding_norm = [&](const StackSpec& stack, Count n) {
    return spec.embedding_norm ? n * spec.hidden_size + n * statistics(stack.final_norm) : Count();
  };
  if (spec.encoder_decoder()) {
    saved += embedding_norm(spec.encoder, source_rows);
    add(spec.encoder, {source_rows, Count()});
    saved += end_of(spec.encoder, source_rows);  // every layer of the decoder reads it
  }
  saved += embedding_norm(spec, rows);
  add(spec, {rows, source_rows});
  Count ends = end_of(spec, rows);
  // The head's own layer: its product, its activation, and the norm's output and statistics.
  if (spec.head_transform) ends += rows * (3 * spec.hidden_size + statistics(spec.final_norm));
  const Count chunk = Count(std::min(rows.value(), logit_rows(spec.vocab_size))) * spec.vocab_size;
  return {.saved_layers = (saved * kFloat).value(),
          .saved_ends = (ends * kFloat).value(),
          .head_transient = ((chunk + rows * spec.hidden_size) * kFloat).value(),
          .backward_transient = std::max<int64_t>(0, (backward * kFloat).value() - (saved * kFloat).value())};
}

int64_t inference_bytes(const ArchSpec& spec, int64_t rows, int64_t logit_rows) {
  Count widest;
  for (const StackSpec* stack : {static_cast<const StackSpec*>(&spec), &spec.encoder}) {
    for (const LayerSpec& layer : stack->layers) {
      const AttentionWidths a = widths(layer.attention);
      const Count attention = Count(a.qkv) + a.query;
      const FfnWidths of_ffn = ffn_widths(spec, layer);
      const Count ffn = of_ffn.saved + of_ffn.forward;
      // Parallel: the norm's output stays for the second sublayer.
      const Count kept(layer.block.parallel() ? spec.hidden_size : 0);
      widest = std::max(widest, std::max(attention + kept, ffn));
    }
  }
  const Count row =
      Count(spec.hidden_size) + spec.hidden_size + widest;  // residual, its normalized form, and one sublayer
  return ((Count(rows) * row + Count(logit_rows) * spec.vocab_size) * kFloat).value();
}

}  // namespace transept
