// The terms of plan/activations.h. n: rows (batch x context), D: hidden size, H, G, K: query heads, KV heads, head
// size.
#include "plan/activations.h"

#include <algorithm>

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

LayerBackward layer_backward(const ArchSpec& spec, const LayerSpec& layer, Count rows) {
  const AttentionWidths a = widths(layer.attention);
  const Count hidden = rows * spec.hidden_size;
  const Count activation = rows * layer.ffn.intermediate_size;
  return {.ffn = hidden + activation + activation + rows * layer.ffn.in_width() + hidden,
          .attention = hidden + rows * a.output + rows * a.qkv + hidden + rows * a.heads};
}

int64_t head_chunk_rows(int64_t vocab_size) {
  constexpr int64_t kChunkFloats = int64_t{4} << 20;
  return std::clamp<int64_t>(kChunkFloats / vocab_size, 64, 1024);
}

int64_t ActivationBytes::total() const {
  return (Count(saved_layers) + saved_ends + std::max(head_transient, backward_transient)).value();
}

ActivationBytes activation_bytes(const ArchSpec& spec, int64_t batch, int64_t context, bool recompute) {
  const Count rows = Count(batch) * context;
  const Count hidden = rows * spec.hidden_size;
  Count saved, transient;
  for (const LayerSpec& layer : spec.layers) {
    const LayerSaved kept = layer_saved(spec, layer, rows);
    const Count backward = layer_backward(spec, layer, rows).peak();
    saved += recompute ? kept.residual_in : kept.total();
    // Its input stands already; the rest of its saved set is made anew for its own backward pass.
    const Count again = recompute ? Count(kept.total().value() - kept.residual_in.value()) : Count(0);
    transient = std::max(transient, backward + again);
  }
  // Without a final norm the last layer's output is what the head reads, and is kept for it.
  const Count ends = spec.has_final_norm() ? hidden + hidden + rows * statistics(spec.final_norm) : hidden;
  const Count chunk = Count(std::min(rows.value(), head_chunk_rows(spec.vocab_size))) * spec.vocab_size;
  return {.saved_layers = (saved * kFloat).value(),
          .saved_ends = (ends * kFloat).value(),
          .head_transient = ((chunk + hidden) * kFloat).value(),
          .backward_transient = (transient * kFloat).value()};
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
