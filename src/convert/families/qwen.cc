// Qwen2 (arXiv:2407.10671) and Qwen3 (arXiv:2505.09388), dense and with experts: LLaMA's form with biases on queries,
// keys and values, or norms of queries and keys.
#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

struct QwenDefaults {
  std::optional<int64_t> kv_heads = std::nullopt;
  int64_t head_dim = 0;
};

void qwen_layer(ConfigMap& map, ArchSpec& spec, LayerSpec& layer, const QwenDefaults& defaults) {
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", 32768);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", 1e-6);
  map_heads(map, map.kind<GqaSpec>(layer.attention, "attention"), defaults.kv_heads, defaults.head_dim);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, gated_activations(), "silu");
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  map.ignore({"attention_dropout"});
}

// A window counts only where use_sliding_window says so, and then in the layers from max_window_layers on.
void map_windows(ConfigMap& map, StackSpec& stack) {
  bool used = false;
  for (LayerSpec& l : stack.layers) used |= window_of(l) > 0;
  map("use_sliding_window", used, false);
  int64_t first = 28;
  if (map.reading()) map("max_window_layers", first, 28);
  if (map.reading() && !used) {
    map.ignore({"sliding_window", "layer_types"});
    return;
  }
  map_layer_windows(map, stack, 4096, [&](size_t i) { return static_cast<int64_t>(i) >= first; });
}

void qwen2(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  qwen_layer(map, spec, layer, {});
  if (map.reading()) std::get<GqaSpec>(layer.attention).qkv_bias = true;
  map.layers("num_hidden_layers", spec, layer);
  map_windows(map, spec);
}

void qwen3_attention(ConfigMap& map, LayerSpec& layer) {
  GqaSpec& attention = std::get<GqaSpec>(layer.attention);
  map_attention_bias(map, attention);
  if (map.reading()) attention.qk_norm = QkNorm::kRmsnorm;
}

void qwen3(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  qwen_layer(map, spec, layer, {.head_dim = 128});
  qwen3_attention(map, layer);
  map.layers("num_hidden_layers", spec, layer);
  map_windows(map, spec);
}

void qwen_experts(ConfigMap& map, MoeSpec& moe, int64_t experts, int64_t chosen, int64_t width) {
  map_num_experts(map, moe.num_experts, "num_experts", "num_local_experts", experts);
  map("num_experts_per_tok", moe.num_experts_per_tok, chosen);
  map("moe_intermediate_size", moe.moe_intermediate_size, width);
  map("norm_topk_prob", moe.norm_topk_prob, false);
  map("router_aux_loss_coef", moe.router_aux_loss_coef, 0.001);
  map.ignore({"output_router_logits"});
}

void qwen2_moe(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  qwen_layer(map, spec, layer, {.kv_heads = 16});
  map("qkv_bias", std::get<GqaSpec>(layer.attention).qkv_bias, true);
  MoeSpec moe = sparse_layer(map, spec, layer).moe;
  qwen_experts(map, moe, 60, 4, 1408);
  map("shared_expert_intermediate_size", moe.shared_expert_intermediate_size, 5632);
  if (map.reading()) moe.shared_expert_gate = moe.has_shared();
  layer.moe = moe;
  map.layers("num_hidden_layers", spec, layer);
  map_dense_layers(map, spec);
  map_windows(map, spec);
}

void qwen3_moe(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  qwen_layer(map, spec, layer, {.kv_heads = 4});
  qwen3_attention(map, layer);
  MoeSpec moe = sparse_layer(map, spec, layer).moe;
  qwen_experts(map, moe, 128, 8, 768);
  layer.moe = moe;
  map.layers("num_hidden_layers", spec, layer);
  map_dense_layers(map, spec);
  map_windows(map, spec);
}

NameTable names_with_experts(const ArchSpec&) { return expert_names(); }

NameTable qwen2_moe_names(const ArchSpec&) {
  return with_base(
      {{"layers.#.ffn.shared_expert.gate_up.weight",
        "model.layers.#.mlp.shared_expert.gate_proj.weight model.layers.#.mlp.shared_expert.up_proj.weight"},
       {"layers.#.ffn.shared_expert.down.weight", "model.layers.#.mlp.shared_expert.down_proj.weight"},
       {"layers.#.ffn.shared_expert_gate.weight", "model.layers.#.mlp.shared_expert_gate.weight"}},
      expert_names());
}

}  // namespace

const Family kQwen2Family{.model_type = "qwen2",
                          .architecture = "Qwen2ForCausalLM",
                          .config = qwen2,
                          .names = names_as_llama,
                          .base_prefix = "model.",
                          .ignorable = frequency_table};
const Family kQwen3Family{.model_type = "qwen3",
                          .architecture = "Qwen3ForCausalLM",
                          .config = qwen3,
                          .names = names_as_llama,
                          .base_prefix = "model."};
const Family kQwen2MoeFamily{.model_type = "qwen2_moe",
                             .architecture = "Qwen2MoeForCausalLM",
                             .config = qwen2_moe,
                             .names = qwen2_moe_names,
                             .base_prefix = "model.",
                             .ignorable = frequency_table};
const Family kQwen3MoeFamily{.model_type = "qwen3_moe",
                             .architecture = "Qwen3MoeForCausalLM",
                             .config = qwen3_moe,
                             .names = names_with_experts,
                             .base_prefix = "model."};

}  // namespace transept
