// The terms of plan/activations.h. n: rows (batch x context), D: hidden size, H, G, K: query heads, KV heads, head
// size.
#include "plan/activations.h"

#include <algorithm>

#include "tensor/logit_rows.h"

namespace transept {
namespace {

constexpr int64_t kFloat = 4;  // bytes

struct AttentionWidths {
  int64_t qkv, output, heads;
};
AttentionWidths widths(const GqaSpec& a) { return {a.qkv_width(), a.query_width(), a.num_attention_heads}; }
AttentionWidths widths(const AttentionSpec& any) {
  return std::visit([](const auto& a) { return widths(a); }, any);
}

int64_t statistics(const NormSpec& norm) {
  return std::visit([](const auto& n) { return n.saved_per_row(); }, norm);
}

}  // namespace

Count LayerSaved::total() const {
  return residual_in + attention_input + qkv + attention_output + log_sum_exp + residual_middle + ffn_input +
         ffn_first + norm_statistics;
}

// With post placement the names shift and the sizes stay: the attention reads the residual itself, and each norm's
// input is kept in place of its output.
LayerSaved layer_saved(const ArchSpec& spec, const LayerSpec& layer, Count rows) {
  const AttentionWidths a = widths(layer.attention);
  const Count hidden = rows * spec.hidden_size;
  return {.residual_in = hidden,
          .attention_input = hidden,
          .qkv = rows * a.qkv,
          .attention_output = rows * a.output,
          .log_sum_exp = rows * a.heads,
          .residual_middle = hidden,
          .ffn_input = hidden,
          .ffn_first = rows * layer.ffn.in_width(),
          .norm_statistics = rows * (2 * statistics(layer.norm))};
}

Count layer_peak(const ArchSpec& spec, const LayerSpec& layer, Count rows, bool recompute) {
  const bool pre = layer.placement == NormPlacement::kPre;
  const LayerSaved s = layer_saved(spec, layer, rows);
  const Count gradient = rows * spec.hidden_size, activation = rows * layer.ffn.intermediate_size;
  const Count statistics_of_one = rows * statistics(layer.norm);
  // Dropout's backward pass masks a copy: the residual still needs the gradient as it is.
  const Count masked = spec.dropout > 0 ? gradient : Count(0);
  const Count standing_attention = s.residual_in + (pre ? s.attention_input + statistics_of_one : Count(0)) + s.qkv +
                                   s.attention_output + s.log_sum_exp;
  // Post placement: the last norm is through, and gave back its input.
  const Count standing_ffn = standing_attention + s.residual_middle + s.ffn_first + statistics_of_one +
                             (pre ? s.ffn_input : s.attention_input);

  // The gradient of ffn_first takes its place. The activation made again is gone when the gradient of the input comes.
  const Count ffn = standing_ffn + gradient + masked + std::max(activation, gradient);
  // Gradients of the residual, of attention_output and of qkv.
  const Count attention = standing_attention + gradient + s.attention_output + s.qkv;
  Count peak = std::max(ffn, attention);
  if (!pre) peak = std::max(peak, s.total() + gradient + gradient);  // the last norm's output and input
  // The forward pass again, up to the layer's output, while the gradient of that waits.
  if (recompute)
    peak = std::max(peak, s.total() + gradient + (pre ? gradient + activation : std::max(activation, gradient)));
  return peak;
}

int64_t ActivationBytes::total() const {
  return (Count(saved_layers) + std::max((Count(saved_ends) + head_transient).value(), backward_transient)).value();
}

ActivationBytes activation_bytes(const ArchSpec& spec, int64_t batch, int64_t context, bool recompute) {
  const Count rows = Count(batch) * context;
  const Count hidden = rows * spec.hidden_size;
  Count saved, backward;
  for (const LayerSpec& layer : spec.layers) {
    backward = std::max(backward, saved + layer_peak(spec, layer, rows, recompute));
    const LayerSaved kept = layer_saved(spec, layer, rows);
    saved += recompute ? kept.residual_in : kept.total();
  }
  // Without a final norm the last layer's output is what the head reads.
  const Count ends = spec.has_final_norm() ? hidden + hidden + rows * statistics(spec.final_norm) : hidden;
  const Count chunk = Count(std::min(rows.value(), logit_rows(spec.vocab_size))) * spec.vocab_size;
  return {.saved_layers = (saved * kFloat).value(),
          .saved_ends = (ends * kFloat).value(),
          .head_transient = ((chunk + hidden) * kFloat).value(),
          .backward_transient = (backward * kFloat).value() - (saved * kFloat).value()};
}

int64_t inference_bytes(const ArchSpec& spec, int64_t rows, int64_t logit_rows) {
  Count widest;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionWidths a = widths(layer.attention);
    widest =
        std::max(widest, std::max(Count(a.qkv) + a.output, Count(layer.ffn.in_width()) + layer.ffn.intermediate_size));
  }
  const Count row =
      Count(spec.hidden_size) + spec.hidden_size + widest;  // residual, its normalized form, and one sublayer
  return ((Count(rows) * row + Count(logit_rows) * spec.vocab_size) * kFloat).value();
}

}  // namespace transept
