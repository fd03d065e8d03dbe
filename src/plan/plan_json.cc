// The plan as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/plan.h"

namespace transept {
namespace {

// Whole numbers without a decimal point, as far as a double holds them.
Json number(double x) {
  if (std::abs(x) <= static_cast<double>(int64_t{1} << 53) && x == std::floor(x)) return static_cast<int64_t>(x);
  return x;
}

Json json_of(const Architecture& a) {
  return {{"topology", a.topology},
          {"layers", a.layers},
          {"encoder_layers", a.encoder_layers},
          {"hidden_size", a.hidden_size},
          {"attention", a.attention},
          {"num_attention_heads", a.heads},
          {"num_key_value_heads", a.kv_heads},
          {"head_dim", a.head_dim},
          {"sliding_window", a.sliding_window},
          {"windowed_layers", a.windowed_layers},
          {"position", a.position},
          {"norm", a.norm},
          {"block", a.block},
          {"ffn", a.ffn},
          {"intermediate_size", a.intermediate_size},
          {"num_experts", a.experts},
          {"num_experts_per_tok", a.experts_per_token},
          {"shared_expert_intermediate_size", a.shared_expert_size},
          {"dense_layers", a.dense_layers},
          {"vocab_size", a.vocab_size},
          {"max_position_embeddings", a.context},
          {"tie_word_embeddings", a.tied}};
}

Json json_of(const ParameterCounts& p, int64_t context) {
  Json layers = Json::array();
  for (const LayerGroup& l : p.layers) {
    layers.push_back({{"encoder", l.encoder},
                      {"first", l.first},
                      {"count", l.count},
                      {"attention", l.attention},
                      {"cross_attention", l.cross_attention},
                      {"ffn", l.ffn},
                      {"norm", l.norm},
                      {"total", l.total()},
                      {"active", l.active},
                      {"kv_elements_per_token", l.kv_elements_per_token},
                      {"source_kv_elements_per_token", l.source_kv_elements_per_token},
                      {"sliding_window", l.sliding_window},
                      {"cached_tokens", l.kv_elements_per_token > 0 ? cached_tokens(l.sliding_window, context) : 0}});
  }
  return {{"total", p.total},
          {"active", p.active},
          {"embedding", p.embedding},
          {"active_without_input_embedding", p.active_without_input_embedding},
          {"matrices", p.matrices},
          {"parts",
           {{"embedding", p.embedding},
            {"position", p.position},
            {"attention", p.attention},
            {"cross_attention", p.cross_attention},
            {"ffn", p.ffn},
            {"norm", p.norm},
            {"pooler", p.pooler},
            {"head", p.head}}},
          {"layers", layers}};
}

Json json_of(const CacheSize& c) {
  return {{"elements_per_token", c.elements_per_token},
          {"source_elements_per_token", c.source_elements_per_token},
          {"multi_head_elements_per_token", c.multi_head_elements_per_token},
          {"bytes_per_token", c.bytes_per_token},
          {"bytes", c.bytes},
          {"batch_bytes", c.batch_bytes}};
}

Json json_of(const FlopCounts& f) {
  Json conventions = Json::array();
  for (const FlopConvention& c : f.conventions) {
    conventions.push_back({{"name", c.name},
                           {"formula", c.formula},
                           {"source", c.source},
                           {"train_per_token", number(c.train_per_token)}});
  }
  Json json = {{"linear_forward_per_token", f.linear_forward_per_token},
               {"attention_forward_per_token", number(f.attention_forward_per_token)},
               {"attention_forward_per_token_full", number(f.attention_forward_per_token_full)},
               {"forward_per_token", number(f.forward_per_token)},
               {"train_per_token", number(f.train_per_token)},
               {"train_per_step", number(f.train_per_step)},
               {"recompute_per_token", number(f.recompute_per_token)},
               {"conventions", conventions},
               {"convention",
                {{"multiply_add", "2"},
                 {"linear", "matrices incl. head, embedding lookup free"},
                 {"attention", "mean attended length, windows exact"},
                 {"train", "3 x forward"}}}};
  if (f.absorbed_per_cached_key > 0) {
    json["latent"] = {{"absorbed_per_cached_key", f.absorbed_per_cached_key},
                      {"expanded_per_cached_key", f.expanded_per_cached_key},
                      {"expansion_per_cached_token", f.expansion_per_cached_token}};
  }
  return json;
}

Json json_of(const MemoryNeeds& m) {
  return {{"weights", m.weights},
          {"training_weights", m.training_weights},
          {"gradients", m.gradients},
          {"master_weights", m.master_weights},
          {"optimizer", m.optimizer},
          {"activations", m.activations},
          {"activation_terms",
           {{"saved_layers", m.activation_terms.saved_layers},
            {"saved_ends", m.activation_terms.saved_ends},
            {"head_transient", m.activation_terms.head_transient},
            {"backward_transient", m.activation_terms.backward_transient}}},
          {"logits", m.logits},
          {"fragmentation", m.fragmentation},
          {"inference_workspace", m.inference_workspace},
          {"peak_training", m.peak_training},
          {"peak_inference", m.peak_inference}};
}

Json json_of(const ParallelPlan& p) {
  Json stages = Json::array(), traffic = Json::object();
  for (const StageMemory& s : p.stages) {
    stages.push_back({{"first_layer", s.first_layer},
                      {"layers", s.layers},
                      {"in_flight", s.in_flight},
                      {"parameters", s.parameters},
                      {"weights", s.weights},
                      {"gradients", s.gradients},
                      {"master_weights", s.master_weights},
                      {"optimizer", s.optimizer},
                      {"activations", s.activations},
                      {"total", s.total()}});
  }
  for (const Traffic& t : p.traffic)
    traffic[t.kind] = {{"operation", t.operation}, {"bytes_per_step", number(std::round(t.bytes))}};
  return {{"data", p.layout.data},
          {"zero", p.layout.zero},
          {"tensor", p.layout.tensor},
          {"pipeline", p.layout.pipeline},
          {"expert", p.layout.expert},
          {"context", p.layout.context},
          {"micro_batches", p.layout.micro_batches},
          {"ranks", p.ranks},
          {"peak", p.peak()},
          {"bubble", p.bubble},
          {"stages", stages},
          {"traffic", traffic}};
}

Json json_of(const ServingWork& s) {
  Json json = {{"weight_bytes_per_step", s.weight_bytes_per_step},
               {"kv_bytes_per_decoded_token", s.kv_bytes_per_decoded_token},
               {"bytes_per_decoded_token", number(s.bytes_per_decoded_token)},
               {"flops_per_decoded_token", number(s.flops_per_decoded_token)},
               {"arithmetic_intensity", s.arithmetic_intensity}};
  if (s.memory_bytes > 0) {
    json["memory_bytes"] = s.memory_bytes;
    json["largest_batch"] = s.largest_batch;
  }
  return json;
}

}  // namespace

Json to_json(const Plan& plan) {
  Json json = {{"name", plan.name},
               {"context", plan.context},
               {"source_context", plan.source_context},
               {"batch", plan.batch},
               {"dtype", plan.dtype},
               {"kv_dtype", plan.kv_dtype},
               {"train_dtype", plan.train_dtype},
               {"optimizer", plan.optimizer},
               {"recompute", recompute_name(plan.recompute)},
               {"architecture", json_of(plan.architecture)},
               {"parameters", json_of(plan.parameters, plan.context)},
               {"kv_cache", json_of(plan.kv_cache)},
               {"flops", json_of(plan.flops)},
               {"memory", json_of(plan.memory)},
               {"chinchilla",
                {{"tokens_per_parameter", plan.chinchilla.tokens_per_parameter},
                 {"tokens", plan.chinchilla.tokens},
                 {"train_flops", number(plan.chinchilla.train_flops)},
                 {"train_flops_counted", number(plan.chinchilla.train_flops_counted)}}},
               {"serving", json_of(plan.serving)}};
  if (plan.parallel.ranks > 0) json["parallel"] = json_of(plan.parallel);
  return json;
}

}  // namespace transept
