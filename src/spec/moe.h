// Mixture of experts in place of a layer's feed-forward network: a router sends each token to a few of many experts
// (arXiv:1701.06538, arXiv:2101.03961; fine-grained and shared experts: arXiv:2401.06066). Each expert has the form of
// the layer's "ffn".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "spec/ffn.h"
#include "spec/fields.h"
#include "spec/params.h"

namespace transept {

enum class ScoringFunc {
  kSoftmax,          // over all experts (Switch, Qwen, DeepSeek-V2)
  kSoftmaxOfChosen,  // over the chosen ones (Mixtral)
  kSigmoid,          // each expert by itself (DeepSeek-V3)
};
template <>
struct EnumNames<ScoringFunc> {
  static constexpr std::array<std::string_view, 3> kNames{"softmax", "softmax_of_chosen", "sigmoid"};
};

// What a group of experts is chosen by.
enum class GroupScoring { kMax, kTopTwo };
template <>
struct EnumNames<GroupScoring> {
  static constexpr std::array<std::string_view, 2> kNames{"max", "top_two"};
};

// Who chooses whom. Experts that choose look at all tokens of a sequence, later ones too (arXiv:2202.09368).
enum class RoutedBy { kTokens, kExperts };
template <>
struct EnumNames<RoutedBy> {
  static constexpr std::array<std::string_view, 2> kNames{"tokens", "experts"};
};

// Over what the balance loss takes its means.
enum class BalanceScope { kBatch, kSequence };
template <>
struct EnumNames<BalanceScope> {
  static constexpr std::array<std::string_view, 2> kNames{"batch", "sequence"};
};

struct MoeSpec {
  int64_t num_experts = 0;  // 0: the layer is dense
  int64_t num_experts_per_tok = 2;
  int64_t moe_intermediate_size = 0;  // of one expert; 0: that of ffn
  RoutedBy router_choice = RoutedBy::kTokens;
  ScoringFunc scoring_func = ScoringFunc::kSoftmax;
  bool norm_topk_prob = false;
  double routed_scaling_factor = 1;
  bool router_bias = false;
  int64_t n_group = 1;
  int64_t topk_group = 0;  // 0: all of them
  GroupScoring group_score = GroupScoring::kMax;
  int64_t shared_expert_intermediate_size = 0;  // 0: none
  bool shared_expert_gate = false;
  bool selection_bias = false;
  double bias_update_speed = 1e-3;
  double router_aux_loss_coef = 0;
  BalanceScope aux_loss_scope = BalanceScope::kBatch;
  double router_z_loss_coef = 0;
  double capacity_factor = 0;
  double router_jitter_noise = 0;

  template <class V>
  void fields(V& v) {
    v("num_experts", num_experts, Between{0, 65536}, "experts of a layer; 0: one dense network");
    v("num_experts_per_tok", num_experts_per_tok, Between{1, 65536}, "experts that a token is sent to");
    v("moe_intermediate_size", moe_intermediate_size, AtLeast{0},
      "features inside an expert; 0: ffn.intermediate_size");
    v("router_choice", router_choice, Any{},
      "tokens choose their experts, or experts an even share of a sequence's tokens (encoders only)");
    v("scoring_func", scoring_func, Any{},
      "scores from the router's logits: softmax, softmax_of_chosen (among the chosen experts), sigmoid");
    v("norm_topk_prob", norm_topk_prob, Any{}, "the weights of the chosen experts are divided by their sum");
    v("routed_scaling_factor", routed_scaling_factor, Above{0}, "factor on the weights of the chosen experts");
    v("router_bias", router_bias, Any{}, "a bias on the router's logits");
    v("n_group", n_group, Between{1, 65536}, "groups of experts, a divisor of num_experts");
    v("topk_group", topk_group, Between{0, 65536}, "groups whose experts may be chosen; 0: all");
    v("group_score", group_score, Any{}, "a group is chosen by its best score, or by the sum of its two best");
    v("shared_expert_intermediate_size", shared_expert_intermediate_size, AtLeast{0},
      "features of an expert that every token passes; 0: none");
    v("shared_expert_gate", shared_expert_gate, Any{}, "the shared expert's output is multiplied by a sigmoid");
    v("selection_bias", selection_bias, Any{},
      "a bias on the scores that counts for the choice alone, moved by load while training");
    v("bias_update_speed", bias_update_speed, AtLeast{0}, "by how much a step moves the selection bias");
    v("router_aux_loss_coef", router_aux_loss_coef, AtLeast{0}, "factor of the loss that balances loads");
    v("aux_loss_scope", aux_loss_scope, Any{}, "that loss is taken over the batch, or over each sequence");
    v("router_z_loss_coef", router_z_loss_coef, AtLeast{0}, "factor of the loss on the router's log-sum-exp");
    v("capacity_factor", capacity_factor, AtLeast{0},
      "while training, an expert takes at most this times its even share of tokens; 0: all that come");
    v("router_jitter_noise", router_jitter_noise, Fraction{},
      "while training, the router's input is multiplied by up to 1 - this to 1 + this");
  }

  explicit operator bool() const { return num_experts > 0; }
  // One expert, and the shared one, as feed-forward networks.
  FfnSpec expert(FfnSpec ffn) const {
    ffn.intermediate_size = moe_intermediate_size;
    return ffn;
  }
  FfnSpec shared(FfnSpec ffn) const {
    ffn.intermediate_size = shared_expert_intermediate_size;
    return ffn;
  }
  bool has_shared() const { return shared_expert_intermediate_size > 0; }

  // Matrices and biases of the experts are stacked: expert e has rows [e n, (e + 1) n) of each.
  void declare(const FfnSpec& ffn, int64_t hidden_size, ParamList& p) const {
    const FfnSpec one = expert(ffn);
    p.add("router.weight", {num_experts, hidden_size}, Init::kNormal);
    if (router_bias) p.add("router.bias", {num_experts}, Init::kZeros);
    if (selection_bias) p.add("router.selection_bias", {num_experts}, Init::kZeros);
    p.set_experts(num_experts, num_experts_per_tok);
    const std::string in = "experts." + ffn.form().in_name();
    const ParamUse rows{.shard = Shard::kRows};
    p.add(in + ".weight", {num_experts * one.in_width(), hidden_size}, Init::kNormal, rows);
    if (ffn.bias) p.add(in + ".bias", {num_experts * one.in_width()}, Init::kZeros, rows);
    p.add("experts.down.weight", {num_experts * hidden_size, moe_intermediate_size}, Init::kNormalResidual,
          {.shard = Shard::kColumns});
    if (ffn.bias) p.add("experts.down.bias", {num_experts * hidden_size}, Init::kZeros);
    p.set_experts(1, 1);
    if (!has_shared()) return;
    shared(ffn).declare(hidden_size, p, "shared_expert.");
    if (shared_expert_gate) p.add("shared_expert_gate.weight", {1, hidden_size}, Init::kNormal, {.whole = true});
  }
};

}  // namespace transept
