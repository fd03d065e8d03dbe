// The plan as a table for a person.
#include <fmt/format.h>

#include <string>

#include "plan/plan.h"
#include "plan/text_table.h"

namespace transept {
std::string to_text(const Plan& plan) {
  TextTable t;
  const Plan::Parameters& p = plan.parameters;
  const auto share = [&](int64_t n) {
    return fmt::format("{:.1f} %", 100.0 * static_cast<double>(n) / static_cast<double>(p.total));
  };
  t.heading(fmt::format("{}: context {}, batch {}, weights {}, cache {}", plan.name, plan.context, plan.batch,
                        plan.dtype, plan.kv_dtype));

  t.heading("Parameters");
  t.row("total", grouped(p.total));
  t.row("active a token", grouped(p.active));
  t.row("without input embedding", grouped(p.active_without_input_embedding));
  t.row("embedding", grouped(p.embedding), share(p.embedding));
  if (p.position > 0) t.row("position", grouped(p.position), share(p.position));
  t.row("attention", grouped(p.attention), share(p.attention));
  if (p.cross_attention > 0) t.row("cross-attention", grouped(p.cross_attention), share(p.cross_attention));
  t.row("feed-forward", grouped(p.ffn), share(p.ffn));
  t.row("norms", grouped(p.norm), share(p.norm));
  if (p.pooler > 0) t.row("pooler", grouped(p.pooler), share(p.pooler));
  if (p.head > 0) t.row("head", grouped(p.head), share(p.head));
  for (const Plan::LayerGroup& l : p.layers) {
    const std::string label = (l.encoder ? "encoder " : "") +
                              (l.count == 1 ? fmt::format("layer {}", l.first)
                                            : fmt::format("layers {} to {}, each", l.first, l.first + l.count - 1));
    const bool windowed = l.kv_elements_per_token > 0 && l.cached_tokens < plan.context;
    const std::string note = windowed ? fmt::format("window of {}", l.cached_tokens) : "";
    t.row(label, grouped(l.attention + l.cross_attention + l.ffn + l.norm), note);
  }

  t.heading("KV cache");
  const int64_t kept = plan.kv_cache.elements_per_token, multi_head = plan.kv_cache.multi_head_elements_per_token;
  t.row("elements a token", grouped(kept),
        kept == multi_head ? ""
                           : fmt::format("1 / {:.1f} of multi-head attention with as many heads",
                                         static_cast<double>(multi_head) / static_cast<double>(kept)));
  if (plan.source_context > 0) t.row("elements a source token", grouped(plan.kv_cache.source_elements_per_token));
  t.row("bytes a token", bytes(plan.kv_cache.bytes_per_token));
  t.row("a sequence at the context", bytes(plan.kv_cache.bytes));
  if (plan.batch > 1) t.row("the batch", bytes(plan.kv_cache.batch_bytes));

  t.heading("FLOPs a token");
  t.row("linear, forward", flops(static_cast<double>(plan.flops.linear_forward_per_token)));
  t.row("attention, forward", flops(plan.flops.attention_forward_per_token), "at the mean attended length");
  t.row("training", flops(plan.flops.train_per_token), "3 x forward");
  t.row("training, a step of the batch", flops(plan.flops.train_per_step));

  const Plan::Memory& m = plan.memory;
  t.heading("Memory");
  t.row("weights", bytes(m.weights), plan.dtype);
  t.row("gradients", bytes(m.gradients), "f32");
  t.row("optimizer", bytes(m.optimizer), "AdamW, f32");
  t.row("activations", bytes(m.activations), plan.recompute ? "recomputed in the backward pass" : "");
  t.row("peak, training", bytes(m.peak_training), "weights in f32");
  t.row("peak, inference", bytes(m.peak_inference));

  t.heading("Compute-optimal training (20 tokens a parameter)");
  t.row("tokens", grouped(plan.chinchilla.tokens));
  t.row("FLOPs, 6 N D", fmt::format("{:.3g}", plan.chinchilla.train_flops));
  t.row("FLOPs, counted", fmt::format("{:.3g}", plan.chinchilla.train_flops_counted), "attention included");

  const Plan::Serving& s = plan.serving;
  t.heading("Decoding at the context");
  t.row("bytes read a token", bytes(s.bytes_per_decoded_token));
  t.row("FLOPs a token", flops(s.flops_per_decoded_token));
  t.row("FLOPs a byte", fmt::format("{:.2f}", s.arithmetic_intensity));
  if (s.memory_bytes > 0) t.row(fmt::format("largest batch in {}", bytes(s.memory_bytes)), grouped(s.largest_batch));
  return t.take();
}

}  // namespace transept
