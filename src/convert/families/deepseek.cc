// DeepSeek-V2 (arXiv:2405.04434) and V3 (arXiv:2412.19437): multi-head latent attention, fine-grained and shared
// experts behind the first layers; V3 scores experts by sigmoids and balances them by a bias. GLM-4.5
// (arXiv:2508.06471) has V3's experts with grouped-query attention, and DeepSeekMoE (arXiv:2401.06066, "deepseek")
// V2's.

#include "convert/families/common.h"
#include "convert/families/families.h"
#include "convert/families/llama_names.h"

namespace transept {
namespace {

void model(ConfigMap& map, ArchSpec& spec, LayerSpec& layer, int64_t max_positions, double eps) {
  map_model(map, spec, false);
  map_max_positions(map, spec, "max_position_embeddings", max_positions);
  map_norm<RmsNormSpec>(map, layer, "rms_norm_eps", eps);
  map("intermediate_size", layer.ffn.intermediate_size);
  map.choice("hidden_act", layer.ffn.kind, gated_activations(), "silu");
  map.ignore({"attention_dropout", "output_router_logits", "pretraining_tp", "num_nextn_predict_layers", "ep_size"});
}

MlaSpec& latent_attention(ConfigMap& map, LayerSpec& layer) {
  MlaSpec& attention = map.kind<MlaSpec>(layer.attention, "attention");
  map("num_attention_heads", attention.num_attention_heads);
  if (map.reading()) {
    map("q_lora_rank", attention.q_lora_rank, map.has("q_lora_rank") ? 0 : 1536);
  } else {
    map.write("q_lora_rank", attention.q_lora_rank > 0 ? Json(attention.q_lora_rank) : Json());
    map.write("num_key_value_heads", attention.num_attention_heads);
    map.write("head_dim", attention.qk_rope_head_dim);
  }
  map("kv_lora_rank", attention.kv_lora_rank, 512);
  map("qk_nope_head_dim", attention.qk_nope_head_dim, 128);
  map("qk_rope_head_dim", attention.qk_rope_head_dim, 64);
  map("v_head_dim", attention.v_head_dim, 128);
  map("attention_bias", attention.bias, false);
  map.ignore({"num_key_value_heads", "head_dim", "qk_head_dim"});
  return attention;
}

// Of the layers that have experts. A model without them is one whose experts would begin behind its last layer.
MoeSpec experts_of(const StackSpec& stack) {
  for (const LayerSpec& layer : stack.layers) {
    if (layer.moe) return layer.moe;
  }
  return {.num_experts = 1, .num_experts_per_tok = 1, .moe_intermediate_size = 1};
}

// Without the groups, whose keys differ.
void experts(ConfigMap& map, MoeSpec& moe, int64_t count, int64_t width, int64_t shared) {
  map("n_routed_experts", moe.num_experts, count);
  map("num_experts_per_tok", moe.num_experts_per_tok, 8);
  map("moe_intermediate_size", moe.moe_intermediate_size, width);
  int64_t together =
      moe.moe_intermediate_size > 0 ? moe.shared_expert_intermediate_size / moe.moe_intermediate_size : 0;
  map("n_shared_experts", together, map.has("n_shared_experts") ? 0 : shared);
  if (map.reading()) {
    constexpr int64_t kMost = int64_t{1} << 20;
    if (together < 0 || together > kMost) {
      map.problem("n_shared_experts", "is out of range", "allowed are 0 to " + std::to_string(kMost));
    } else if (moe.moe_intermediate_size > 0 && moe.moe_intermediate_size <= kMost) {
      moe.shared_expert_intermediate_size = together * moe.moe_intermediate_size;
    }
  }
  map.require("moe_layer_freq", 1, "layers of experts alternate with dense ones");
  map.ignore({"aux_loss_alpha", "seq_aux"});  // act in training only
}

void sigmoid_experts(ConfigMap& map, MoeSpec& moe, int64_t groups, int64_t chosen_groups) {
  map("n_group", moe.n_group, groups);
  map("topk_group", moe.topk_group, chosen_groups);
  map("norm_topk_prob", moe.norm_topk_prob, true);
  map.require("scoring_func", "sigmoid", "scores are made otherwise");
  map.require("topk_method", "noaux_tc", "experts are chosen otherwise");
  if (!map.reading()) return;
  moe.scoring_func = ScoringFunc::kSigmoid;
  moe.group_score = GroupScoring::kTopTwo;
  moe.selection_bias = true;
}

// The first one. Its class is not part of transformers: the code stands beside the checkpoint.
void deepseek(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  model(map, spec, layer, 2048, 1e-6);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention);
  map_attention_bias(map, attention);
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings);
  MoeSpec moe = sparse_layer(map, spec, layer).moe;
  experts(map, moe, 0, 1407, 0);
  map("norm_topk_prob", moe.norm_topk_prob, false);
  map.require("scoring_func", "softmax", "scores are made otherwise");
  layer.moe = moe ? moe : MoeSpec{};
  map.layers("num_hidden_layers", spec, layer);
  map_first_dense(map, spec, 0);
}

void deepseek_v2(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  model(map, spec, layer, 2048, 1e-6);
  latent_attention(map, layer);
  RopePosition& rope = map_position<RopePosition>(map, layer);
  map_rope(map, rope, spec.max_position_embeddings);
  if (map.reading()) rope.pairing = RopePairing::kInterleaved;
  map.require("mlp_bias", false, "the dense and shared networks have biases, and the routed ones have none");
  MoeSpec moe = experts_of(spec);
  experts(map, moe, 64, 1407, 2);
  map("routed_scaling_factor", moe.routed_scaling_factor);
  const bool grouped = moe.n_group > 1;
  std::string method = grouped ? "group_limited_greedy" : "greedy";
  map("topk_method", method, "greedy");
  int64_t groups = moe.n_group, chosen = moe.topk_group;
  map("n_group", groups, 1);
  map("topk_group", chosen, 0);
  map.require("norm_topk_prob", false, "weights of the chosen experts are divided by their sum");
  map.require("scoring_func", "softmax", "scores are made otherwise");
  if (map.reading()) {
    if (method == "group_limited_greedy") {
      moe.n_group = groups, moe.topk_group = chosen;
    } else if (method != "greedy") {
      map.problem("topk_method", "\"" + method + "\" is not supported",
                  "supported are greedy and group_limited_greedy");
    }
    layer.moe = moe;
  }
  map.layers("num_hidden_layers", spec, layer);
  map_first_dense(map, spec, 0);
}

void deepseek_v3(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  model(map, spec, layer, 4096, 1e-6);
  latent_attention(map, layer);
  RopePosition& rope = map_position<RopePosition>(map, layer);
  map_rope(map, rope, spec.max_position_embeddings);
  bool interleaved = rope.pairing == RopePairing::kInterleaved;
  map("rope_interleave", interleaved, true);
  if (map.reading()) rope.pairing = interleaved ? RopePairing::kInterleaved : RopePairing::kHalfSplit;
  MoeSpec moe = experts_of(spec);
  experts(map, moe, 256, 2048, 1);
  map("routed_scaling_factor", moe.routed_scaling_factor);
  sigmoid_experts(map, moe, 8, 4);
  if (map.reading()) layer.moe = moe;
  map.layers("num_hidden_layers", spec, layer);
  map_first_dense(map, spec, 3);
}

void glm4_moe(ConfigMap& map, ArchSpec& spec) {
  LayerSpec layer = map.common(spec);
  model(map, spec, layer, 131072, 1e-5);
  GqaSpec& attention = map.kind<GqaSpec>(layer.attention, "attention");
  map_heads(map, attention, 8);
  map("attention_bias", attention.qkv_bias, false);
  bool normed = attention.qk_norm == QkNorm::kRmsnorm;
  map("use_qk_norm", normed, false);
  if (map.reading() && normed) attention.qk_norm = QkNorm::kRmsnorm;
  map_rope(map, map_position<RopePosition>(map, layer), spec.max_position_embeddings, {.partial_rotary_factor = 0.5});
  MoeSpec moe = sparse_layer(map, spec, layer).moe;
  experts(map, moe, 128, 1408, 1);
  map("routed_scaling_factor", moe.routed_scaling_factor);
  sigmoid_experts(map, moe, 1, 1);
  layer.moe = moe;
  map.layers("num_hidden_layers", spec, layer);
  map_first_dense(map, spec, 1);
}

NameTable latent_names(const ArchSpec&) {
  return with_base({{"layers.#.attention.q.weight", "model.layers.#.self_attn.q_proj.weight"},
                    {"layers.#.attention.q_down.*", "model.layers.#.self_attn.q_a_proj.*"},
                    {"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_a_layernorm.weight"},
                    {"layers.#.attention.q_up.weight", "model.layers.#.self_attn.q_b_proj.weight"},
                    {"layers.#.attention.kv_down.*", "model.layers.#.self_attn.kv_a_proj_with_mqa.*"},
                    {"layers.#.attention.kv_norm.weight", "model.layers.#.self_attn.kv_a_layernorm.weight"},
                    {"layers.#.attention.kv_up.weight", "model.layers.#.self_attn.kv_b_proj.weight"}},
                   shared_expert_names());
}

NameTable grouped_query_names(const ArchSpec&) { return shared_expert_names(); }

// The layers that predict further tokens stand behind the model's own.
bool prediction_layer(const ArchSpec& spec, const std::string& name) {
  if (frequency_table(spec, name)) return true;
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return false;
  int64_t index = 0;
  size_t at = kLayers.size();
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && index <= kMaxLayers; ++at)
    index = 10 * index + (name[at] - '0');
  return at > kLayers.size() && index >= static_cast<int64_t>(spec.layers.size());
}

}  // namespace

const Family kDeepseekFamily{.model_type = "deepseek",
                             .architecture = "DeepseekForCausalLM",
                             .config = deepseek,
                             .names = grouped_query_names,
                             .base_prefix = "model.",
                             .ignorable = frequency_table};
const Family kDeepseekV2Family{.model_type = "deepseek_v2",
                               .architecture = "DeepseekV2ForCausalLM",
                               .config = deepseek_v2,
                               .names = latent_names,
                               .base_prefix = "model.",
                               .ignorable = frequency_table};
const Family kDeepseekV3Family{.model_type = "deepseek_v3",
                               .architecture = "DeepseekV3ForCausalLM",
                               .config = deepseek_v3,
                               .names = latent_names,
                               .base_prefix = "model.",
                               .ignorable = prediction_layer};
const Family kGlm4MoeFamily{.model_type = "glm4_moe",
                            .architecture = "Glm4MoeForCausalLM",
                            .config = glm4_moe,
                            .names = grouped_query_names,
                            .base_prefix = "model.",
                            .ignorable = prediction_layer};

}  // namespace transept
