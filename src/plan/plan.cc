// The counts of plan.h, all from ArchSpec::declare and the kinds' own forms.
#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/problem.h"
#include "plan/count.h"

namespace transept {
namespace {

struct StoredType {
  const char* name;
  int64_t bytes;
};
constexpr StoredType kStoredTypes[] = {{"f32", 4}, {"f16", 2}, {"bf16", 2}};
constexpr int64_t kFloat = 4;
constexpr int64_t kLargestAsked = int64_t{1}
                                  << 40;  // context and batch; far beyond any machine, and far from overflow by itself

std::optional<int64_t> stored_bytes(const std::string& name) {
  for (const StoredType& t : kStoredTypes) {
    if (name == t.name) return t.bytes;
  }
  return std::nullopt;
}

std::string dtypes_text() {
  std::string s;
  for (const std::string& name : plan_dtypes()) s += (s.empty() ? "" : ", ") + name;
  return s;
}

int64_t elements(const ParamDecl& p) {
  int64_t n = 1;
  for (const int64_t extent : p.shape) n *= extent;
  return n;
}

int64_t window_of(const AttentionSpec& any) {
  return std::visit([](const auto& a) { return a.sliding_window; }, any);
}

int64_t visible(int64_t window, int64_t context) { return window > 0 ? std::min(window, context) : context; }

// Mean over the queries of a sequence of the keys that each sees, w = min(window, T) at the most on one side, itself
// included: causal, the mean over t = 1..T of min(t, w); bidirectional, both sides, itself counted once.
double mean_attended(const LayerSpec& layer, int64_t context) {
  const double w = static_cast<double>(visible(window_of(layer.attention), context)), t = static_cast<double>(context);
  const double one_side = (w * (w + 1) / 2 + (t - w) * w) / t;
  return layer.causal ? one_side : 2 * one_side - 1;
}

double flops_per_query_key(const AttentionSpec& any) {
  return std::visit([](const auto& a) { return static_cast<double>(a.flops_per_query_key()); }, any);
}

int64_t kv_elements(const AttentionSpec& any) {
  Count width;
  for (const CacheRow& row : std::visit([](const auto& a) { return a.cache_rows(); }, any)) width += row.width;
  return width.value();
}

void check(const ArchSpec& spec, const Plan& plan) {
  Problems problems;
  const std::string range = "allowed: 1 to " + std::to_string(kLargestAsked);
  if (plan.context < 1 || plan.context > kLargestAsked)
    problems.push_back({"context", "got " + std::to_string(plan.context), range});
  if (plan.source_context < 0 || plan.source_context > kLargestAsked)
    problems.push_back({"source-context", "got " + std::to_string(plan.source_context), range});
  if (plan.batch < 1 || plan.batch > kLargestAsked)
    problems.push_back({"batch", "got " + std::to_string(plan.batch), range});
  if (std::holds_alternative<LearnedPosition>(spec.position) && plan.context > spec.max_position_embeddings) {
    problems.push_back({"context",
                        std::to_string(plan.context) + " tokens, and the table of positions ends at " +
                            std::to_string(spec.max_position_embeddings),
                        "ask for at most that many"});
  }
  if (!stored_bytes(plan.dtype))
    problems.push_back({"dtype", "none is named \"" + plan.dtype + "\"", "allowed: " + dtypes_text()});
  if (!stored_bytes(plan.kv_dtype))
    problems.push_back({"kv-dtype", "none is named \"" + plan.kv_dtype + "\"", "allowed: " + dtypes_text()});
  throw_if_any(std::move(problems));
}

// Merges equal neighbours into groups.
void add_groups(const std::vector<Plan::LayerGroup>& layers, std::vector<Plan::LayerGroup>& groups) {
  for (size_t i = 0; i < layers.size(); ++i) {
    Plan::LayerGroup layer = layers[i];
    if (i > 0) {
      layer.first = groups.back().first;
      layer.count = groups.back().count;
      if (layer == groups.back()) {
        ++groups.back().count;
        continue;
      }
    }
    layer.first = static_cast<int64_t>(i);
    layer.count = 1;
    groups.push_back(layer);
  }
}

void count_parameters(const ArchSpec& spec, Plan& plan) {
  Plan::Parameters& p = plan.parameters;
  std::vector<Plan::LayerGroup> layers(spec.layers.size()), encoder_layers(spec.encoder.layers.size());
  Count matrices, idle;  // that multiply a token; that it does not touch
  for (const ParamDecl& decl : spec.declare().decls()) {
    const int64_t n = elements(decl), active = n / decl.experts * decl.active_experts;
    p.total = (Count(p.total) + n).value();
    idle += n - active;
    Plan::LayerGroup outside;
    Plan::LayerGroup& layer =
        decl.layer < 0 ? outside : (decl.encoder ? encoder_layers : layers)[static_cast<size_t>(decl.layer)];
    switch (decl.part) {
      case Part::kEmbedding:
        p.embedding += n;
        break;
      case Part::kPosition:
        p.position += n;
        break;
      case Part::kAttention:
        p.attention += n;
        layer.attention += n;
        break;
      case Part::kCrossAttention:
        p.cross_attention += n;
        layer.cross_attention += n;
        break;
      case Part::kFfn:
        p.ffn += n;
        layer.ffn += n;
        break;
      case Part::kNorm:
        p.norm += n;
        layer.norm += n;
        break;
      case Part::kPooler:
        p.pooler += n;
        break;
      case Part::kHead:
        p.head += n;
        break;
    }
    const bool looked_up = decl.part == Part::kPosition || (decl.part == Part::kEmbedding && !spec.tie_word_embeddings);
    // The pooler reads one vector a sequence.
    if (decl.shape.size() == 2 && !looked_up && decl.part != Part::kPooler) matrices += active;
  }
  p.active = p.total - idle.value();
  p.active_without_input_embedding = spec.tie_word_embeddings ? p.active : p.active - p.embedding;
  plan.flops.linear_forward_per_token = (Count(2) * matrices).value();

  for (Plan::LayerGroup& layer : encoder_layers) layer.encoder = true;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& spec_layer = spec.layers[i];
    if (!spec_layer.causal) continue;  // nothing is decoded, so nothing is cached
    layers[i].kv_elements_per_token = kv_elements(spec_layer.attention);
    layers[i].cached_tokens = visible(window_of(spec_layer.attention), plan.context);
    if (spec_layer.cross_attention) layers[i].source_kv_elements_per_token = kv_elements(spec_layer.attention);
  }
  add_groups(encoder_layers, p.layers);
  add_groups(layers, p.layers);
}

void count_cache(const ArchSpec& spec, Plan& plan) {
  const int64_t size = *stored_bytes(plan.kv_dtype);
  Count width, source_width, held;
  for (const Plan::LayerGroup& layer : plan.parameters.layers) {
    width += Count(layer.kv_elements_per_token) * layer.count;
    source_width += Count(layer.source_kv_elements_per_token) * layer.count;
    held += Count(layer.kv_elements_per_token) * layer.count * layer.cached_tokens;
  }
  held += source_width * plan.source_context;
  Count multi_head;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.causal)
      multi_head += std::visit([](const auto& a) { return a.multi_head_cache_width(); }, layer.attention);
  }
  plan.kv_cache = {.elements_per_token = width.value(),
                   .source_elements_per_token = source_width.value(),
                   .multi_head_elements_per_token = multi_head.value(),
                   .bytes_per_token = (width * size).value(),
                   .bytes = (held * size).value(),
                   .batch_bytes = (held * size * plan.batch).value()};
}

void count_flops(const ArchSpec& spec, Plan& plan) {
  Plan::Flops& f = plan.flops;
  for (const LayerSpec& layer : spec.layers) {
    const double per_key = flops_per_query_key(layer.attention);
    f.attention_forward_per_token += per_key * mean_attended(layer, plan.context);
    if (layer.cross_attention) f.attention_forward_per_token += per_key * static_cast<double>(plan.source_context);
  }
  for (const LayerSpec& layer : spec.encoder.layers)
    f.attention_forward_per_token += flops_per_query_key(layer.attention) * mean_attended(layer, plan.source_context);
  f.forward_per_token = static_cast<double>(f.linear_forward_per_token) + f.attention_forward_per_token;
  f.train_per_token = 3 * f.forward_per_token;
  f.train_per_step = f.train_per_token * static_cast<double>(plan.batch) * static_cast<double>(plan.context);
}

void count_memory(const ArchSpec& spec, Plan& plan) {
  Plan::Memory& m = plan.memory;
  const Count total = plan.parameters.total;
  m.weights = (total * *stored_bytes(plan.dtype)).value();
  m.training_weights = (total * kFloat).value();
  m.gradients = (total * kFloat).value();
  m.optimizer = (total * (2 * kFloat)).value();
  m.activation_terms = activation_bytes(spec, plan.batch, plan.context, plan.source_context, plan.recompute);
  m.activations = m.activation_terms.total();
  m.peak_training = (Count(m.training_weights) + m.gradients + m.optimizer + m.activations).value();
  const int64_t rows = std::max(std::min(plan.context, kPrefillRows), plan.batch);
  m.inference_workspace = inference_bytes(spec, rows, plan.batch, plan.context - std::min(plan.context, kPrefillRows));
  m.peak_inference = (Count(m.weights) + plan.kv_cache.batch_bytes + m.inference_workspace).value();
}

// Of the source, once for the whole target: the encoder, and cross-attention's keys and values.
bool reads_source(const ParamDecl& decl) {
  return decl.encoder ||
         (decl.part == Part::kCrossAttention && decl.name.find("cross_attention.kv.") != std::string::npos);
}

void count_serving(const ArchSpec& spec, Plan& plan, int64_t memory_bytes) {
  Plan::Serving& s = plan.serving;
  const int64_t size = *stored_bytes(plan.dtype);
  Count source, source_matrices;
  double more_experts = 0;  // elements that other rows of the batch are sent to
  for (const ParamDecl& decl : spec.declare().decls()) {
    if (decl.experts > 1) {
      const double all = static_cast<double>(decl.experts), share = static_cast<double>(decl.active_experts) / all;
      const double touched = all * (1 - std::pow(1 - share, static_cast<double>(plan.batch)));
      more_experts += static_cast<double>(elements(decl) / decl.experts) * (touched - all * share);
    }
    if (!reads_source(decl)) continue;
    source += elements(decl);
    if (decl.shape.size() == 2 && decl.part != Part::kPosition) source_matrices += elements(decl);
  }
  s.weight_bytes_per_step = ((Count(plan.parameters.active_without_input_embedding - source.value()) +
                              static_cast<int64_t>(std::llround(std::max(0.0, more_experts)))) *
                             size)
                                .value();
  s.kv_bytes_per_decoded_token = plan.kv_cache.bytes;
  const double row = static_cast<double>(
      spec.tie_word_embeddings ? 0 : spec.hidden_size * size);  // looked up; tied, it is among the weights
  s.bytes_per_decoded_token = static_cast<double>(s.weight_bytes_per_step) / static_cast<double>(plan.batch) +
                              static_cast<double>(s.kv_bytes_per_decoded_token) + row;
  s.flops_per_decoded_token = static_cast<double>(plan.flops.linear_forward_per_token - 2 * source_matrices.value());
  for (const LayerSpec& layer : spec.layers) {
    const int64_t keys =
        visible(window_of(layer.attention), plan.context) + (layer.cross_attention ? plan.source_context : 0);
    s.flops_per_decoded_token += flops_per_query_key(layer.attention) * static_cast<double>(keys);
  }
  s.arithmetic_intensity = s.flops_per_decoded_token / s.bytes_per_decoded_token;
  s.memory_bytes = memory_bytes;
  if (memory_bytes <= 0) return;
  // The workspace has a part for a piece of a prompt, and one for each sequence's row and logits.
  const int64_t piece_rows = std::min(plan.context, kPrefillRows);
  const int64_t piece = inference_bytes(spec, piece_rows, 0, plan.context - piece_rows);
  const Count each = Count(plan.kv_cache.bytes) + inference_bytes(spec, 1, 1);
  const Count fixed = Count(plan.memory.weights) + piece;
  if (fixed.value() < memory_bytes) s.largest_batch = (memory_bytes - fixed.value()) / each.value();
}

// Whole numbers without a decimal point, as far as a double holds them.
Json number(double x) {
  if (std::abs(x) <= static_cast<double>(int64_t{1} << 53) && x == std::floor(x)) return static_cast<int64_t>(x);
  return x;
}

}  // namespace

const std::vector<std::string>& plan_dtypes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const StoredType& t : kStoredTypes) list.emplace_back(t.name);
    return list;
  }();
  return names;
}

Plan make_plan(const ArchSpec& spec, const PlanOptions& options) {
  Plan plan;
  plan.name = spec.name;
  plan.context = options.context == 0 ? spec.max_position_embeddings : options.context;
  if (spec.encoder_decoder()) plan.source_context = options.source_context == 0 ? plan.context : options.source_context;
  plan.batch = options.batch;
  plan.dtype = options.dtype;
  plan.kv_dtype = options.kv_dtype.empty() ? options.dtype : options.kv_dtype;
  plan.recompute = options.recompute;
  check(spec, plan);
  count_parameters(spec, plan);
  count_cache(spec, plan);
  count_flops(spec, plan);
  count_memory(spec, plan);
  Plan::Chinchilla& c = plan.chinchilla;
  c.tokens = (Count(c.tokens_per_parameter) * plan.parameters.total).value();
  c.train_flops = 6 * static_cast<double>(plan.parameters.total) * static_cast<double>(c.tokens);
  c.train_flops_counted = plan.flops.train_per_token * static_cast<double>(c.tokens);
  count_serving(spec, plan, options.memory_bytes);
  return plan;
}

Json to_json(const Plan& plan) {
  const Plan::Parameters& p = plan.parameters;
  Json layers = Json::array();
  for (const Plan::LayerGroup& l : p.layers) {
    layers.push_back({{"encoder", l.encoder},
                      {"first", l.first},
                      {"count", l.count},
                      {"attention", l.attention},
                      {"cross_attention", l.cross_attention},
                      {"ffn", l.ffn},
                      {"norm", l.norm},
                      {"total", l.attention + l.cross_attention + l.ffn + l.norm},
                      {"kv_elements_per_token", l.kv_elements_per_token},
                      {"source_kv_elements_per_token", l.source_kv_elements_per_token},
                      {"cached_tokens", l.cached_tokens}});
  }
  const Plan::Flops& f = plan.flops;
  const Plan::Memory& m = plan.memory;
  const Plan::Serving& s = plan.serving;
  Json json = {{"name", plan.name},
               {"context", plan.context},
               {"source_context", plan.source_context},
               {"batch", plan.batch},
               {"dtype", plan.dtype},
               {"kv_dtype", plan.kv_dtype},
               {"recompute", plan.recompute},
               {"parameters",
                {{"total", p.total},
                 {"active", p.active},
                 {"embedding", p.embedding},
                 {"active_without_input_embedding", p.active_without_input_embedding},
                 {"parts",
                  {{"embedding", p.embedding},
                   {"position", p.position},
                   {"attention", p.attention},
                   {"cross_attention", p.cross_attention},
                   {"ffn", p.ffn},
                   {"norm", p.norm},
                   {"pooler", p.pooler},
                   {"head", p.head}}},
                 {"layers", layers}}},
               {"kv_cache",
                {{"elements_per_token", plan.kv_cache.elements_per_token},
                 {"source_elements_per_token", plan.kv_cache.source_elements_per_token},
                 {"multi_head_elements_per_token", plan.kv_cache.multi_head_elements_per_token},
                 {"bytes_per_token", plan.kv_cache.bytes_per_token},
                 {"bytes", plan.kv_cache.bytes},
                 {"batch_bytes", plan.kv_cache.batch_bytes}}},
               {"flops",
                {{"linear_forward_per_token", f.linear_forward_per_token},
                 {"attention_forward_per_token", number(f.attention_forward_per_token)},
                 {"forward_per_token", number(f.forward_per_token)},
                 {"train_per_token", number(f.train_per_token)},
                 {"train_per_step", number(f.train_per_step)},
                 {"convention",
                  {{"multiply_add", "2"},
                   {"linear", "matrices incl. head, embedding lookup free"},
                   {"attention", "mean attended length, windows exact"},
                   {"train", "3 x forward"}}}}},
               {"memory",
                {{"weights", m.weights},
                 {"training_weights", m.training_weights},
                 {"gradients", m.gradients},
                 {"optimizer", m.optimizer},
                 {"activations", m.activations},
                 {"activation_terms",
                  {{"saved_layers", m.activation_terms.saved_layers},
                   {"saved_ends", m.activation_terms.saved_ends},
                   {"head_transient", m.activation_terms.head_transient},
                   {"backward_transient", m.activation_terms.backward_transient}}},
                 {"inference_workspace", m.inference_workspace},
                 {"peak_training", m.peak_training},
                 {"peak_inference", m.peak_inference}}},
               {"chinchilla",
                {{"tokens_per_parameter", plan.chinchilla.tokens_per_parameter},
                 {"tokens", plan.chinchilla.tokens},
                 {"train_flops", number(plan.chinchilla.train_flops)},
                 {"train_flops_counted", number(plan.chinchilla.train_flops_counted)}}},
               {"serving",
                {{"weight_bytes_per_step", s.weight_bytes_per_step},
                 {"kv_bytes_per_decoded_token", s.kv_bytes_per_decoded_token},
                 {"bytes_per_decoded_token", number(s.bytes_per_decoded_token)},
                 {"flops_per_decoded_token", number(s.flops_per_decoded_token)},
                 {"arithmetic_intensity", s.arithmetic_intensity}}}};
  if (s.memory_bytes > 0) {
    json["serving"]["memory_bytes"] = s.memory_bytes;
    json["serving"]["largest_batch"] = s.largest_batch;
  }
  return json;
}

}  // namespace transept
