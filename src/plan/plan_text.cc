// The plan as a table for a person.
#include <fmt/format.h>

#include <string>

#include "base/format_number.h"
#include "plan/plan.h"
#include "plan/text_table.h"

namespace transept {
namespace {

std::string count(int64_t n) { return format_count(static_cast<double>(n)); }
std::string bytes(double n) { return format_bytes(n); }
std::string bytes(int64_t n) { return format_bytes(static_cast<double>(n)); }
std::string flops(double n) { return format_si(n, "FLOP"); }

void add_parameters(TextTable& t, const Plan& plan) {
  const ParameterCounts& p = plan.parameters;
  t.heading("Parameters");
  t.row("total", count(p.total));
  t.row("active a token", count(p.active));
  t.row("without input embedding", count(p.active_without_input_embedding));
  const auto part = [&](const char* name, int64_t n) {
    if (n > 0)
      t.row(name, count(n), fmt::format("{:.1f} %", 100.0 * static_cast<double>(n) / static_cast<double>(p.total)));
  };
  part("embedding", p.embedding);
  part("position", p.position);
  part("attention", p.attention);
  part("cross-attention", p.cross_attention);
  part("feed-forward", p.ffn);
  part("norms", p.norm);
  part("pooler", p.pooler);
  part("head", p.head);
  for (const LayerGroup& l : p.layers) {
    const std::string label = (l.encoder ? "encoder " : "") +
                              (l.count == 1 ? fmt::format("layer {}", l.first)
                                            : fmt::format("layers {} to {}, each", l.first, l.first + l.count - 1));
    std::string note = l.sliding_window > 0 ? fmt::format("window of {}", l.sliding_window) : "";
    if (l.active != l.total()) note += (note.empty() ? "" : ", ") + fmt::format("{} active", count(l.active));
    t.row(label, count(l.total()), note);
  }
}

void add_cache(TextTable& t, const Plan& plan) {
  const CacheSize& c = plan.kv_cache;
  t.heading("KV cache");
  const int64_t kept = c.elements_per_token, multi_head = c.multi_head_elements_per_token;
  t.row("elements a token", count(kept),
        kept == multi_head ? ""
                           : fmt::format("1 / {:.1f} of multi-head attention with as many heads",
                                         static_cast<double>(multi_head) / static_cast<double>(kept)));
  if (plan.source_context > 0) t.row("elements a source token", count(c.source_elements_per_token));
  t.row("bytes a token", bytes(c.bytes_per_token), plan.kv_dtype);
  t.row("a sequence at the context", bytes(c.bytes));
  if (plan.batch > 1) t.row("the batch", bytes(c.batch_bytes));
}

void add_flops(TextTable& t, const Plan& plan) {
  const FlopCounts& f = plan.flops;
  t.heading("FLOPs a token");
  t.row("linear, forward", flops(static_cast<double>(f.linear_forward_per_token)));
  t.row("attention, forward", flops(f.attention_forward_per_token), "at the mean attended length");
  t.row("training", flops(f.train_per_token), "3 x forward");
  t.row("training, a step of the batch", flops(f.train_per_step));
  for (const FlopConvention& c : f.conventions) {
    if (c.name != "causal" && c.train_per_token != f.train_per_token)
      t.row("  as " + c.name, flops(c.train_per_token), c.formula);
  }
  if (f.absorbed_per_cached_key > 0) {
    t.row("a cached latent, absorbed", flops(static_cast<double>(f.absorbed_per_cached_key)));
    t.row("a cached latent, expanded",
          flops(static_cast<double>(f.expanded_per_cached_key + f.expansion_per_cached_token)));
  }
}

void add_memory(TextTable& t, const Plan& plan) {
  const MemoryNeeds& m = plan.memory;
  t.heading("Memory");
  t.row("weights", bytes(m.weights),
        fmt::format("{}, {:.3g} bits a weight", plan.dtype,
                    8 * static_cast<double>(m.weights) / static_cast<double>(plan.parameters.total)));
  t.row("peak, inference", bytes(m.peak_inference));
  t.row("training: weights", bytes(m.training_weights), plan.train_dtype);
  t.row("gradients", bytes(m.gradients), plan.train_dtype);
  if (m.master_weights > 0) t.row("master weights", bytes(m.master_weights), "f32");
  t.row("optimizer", bytes(m.optimizer), plan.optimizer);
  t.row("activations", bytes(m.activations),
        plan.recompute == Recompute::kNone ? "" : fmt::format("recomputed: {}", recompute_name(plan.recompute)));
  t.row("peak, training", bytes(m.peak_training), fmt::format("and up to {} of gaps", bytes(m.fragmentation)));
}

void add_parallel(TextTable& t, const ParallelPlan& p) {
  t.heading(fmt::format("A step on {} ranks: data {} (ZeRO-{}), tensor {}, pipeline {}, expert {}, context {}", p.ranks,
                        p.layout.data, p.layout.zero, p.layout.tensor, p.layout.pipeline, p.layout.expert,
                        p.layout.context));
  for (const StageMemory& s : p.stages) {
    t.row(fmt::format("layers {} to {}, a rank", s.first_layer, s.first_layer + s.layers - 1), bytes(s.total()),
          fmt::format("weights {}, gradients {}, optimizer {}, activations {}", bytes(s.weights), bytes(s.gradients),
                      bytes(s.master_weights + s.optimizer), bytes(s.activations)));
  }
  for (const Traffic& traffic : p.traffic) t.row("sent: " + traffic.kind, bytes(traffic.bytes), traffic.operation);
  if (p.layout.pipeline > 1) t.row("pipeline idle", fmt::format("{:.1f} %", 100 * p.bubble));
}

}  // namespace

std::string to_text(const Plan& plan) {
  TextTable t;
  t.heading(fmt::format("{}: context {}, batch {}, weights {}, cache {}", plan.name, plan.context, plan.batch,
                        plan.dtype, plan.kv_dtype));
  add_parameters(t, plan);
  add_cache(t, plan);
  add_flops(t, plan);
  add_memory(t, plan);
  if (plan.parallel.ranks > 0) add_parallel(t, plan.parallel);

  t.heading("Compute-optimal training (20 tokens a parameter)");
  t.row("tokens", count(plan.chinchilla.tokens));
  t.row("FLOPs, 6 N D", fmt::format("{:.3g}", plan.chinchilla.train_flops));
  t.row("FLOPs, counted", fmt::format("{:.3g}", plan.chinchilla.train_flops_counted), "attention included");

  const ServingWork& s = plan.serving;
  t.heading("Decoding at the context");
  t.row("bytes read a token", bytes(s.bytes_per_decoded_token));
  t.row("FLOPs a token", flops(s.flops_per_decoded_token));
  t.row("FLOPs a byte", fmt::format("{:.2f}", s.arithmetic_intensity));
  if (s.memory_bytes > 0) t.row(fmt::format("largest batch in {}", bytes(s.memory_bytes)), count(s.largest_batch));
  return t.take();
}

}  // namespace transept
