// A mixture of experts: the routed ones (ops/moe.h), and a shared expert that every token passes (arXiv:2401.06066
// section 3.2), with a gate of its own where the spec has one.
#include "ops/moe.h"
#include "nn/ffn/activation.h"
#include "nn/ffn/ffn.h"
#include "ops/gate.h"

namespace transept {
namespace {

RouterScore router_score(ScoringFunc f) {
  switch (f) {
    case ScoringFunc::kSoftmax:
      return RouterScore::kSoftmax;
    case ScoringFunc::kSoftmaxOfChosen:
      return RouterScore::kSoftmaxOfChosen;
    case ScoringFunc::kSigmoid:
      return RouterScore::kSigmoid;
  }
  return RouterScore::kSoftmax;
}

class Moe final : public FeedForward {
 public:
  explicit Moe(const FfnPlace& place)
      : spec_(place.layer_spec.moe),
        name_(place.prefix.substr(0, place.prefix.size() - 1)),
        site_(place.site),
        shared_gate_(place.parameters.param(place.prefix + "shared_expert_gate.weight")) {
    const FfnForm form = place.layer_spec.ffn.form();
    params_.router = {
        .experts = spec_.num_experts,
        .top_k = spec_.num_experts_per_tok,
        .score = router_score(spec_.scoring_func),
        .normalize = spec_.norm_topk_prob,
        .scaling = static_cast<float>(spec_.routed_scaling_factor),
        .groups = spec_.n_group,
        .groups_chosen = spec_.topk_group,
        .group_score = spec_.group_score == GroupScoring::kTopTwo ? GroupScore::kTopTwo : GroupScore::kMax,
        .bias = place.parameters.param(place.prefix + "router.selection_bias").value,
        .choice = spec_.router_choice == RoutedBy::kExperts ? RouterChoice::kExperts : RouterChoice::kTokens,
        .capacity_factor = 0};
    params_.gate = place.parameters.param(place.prefix + "router.weight");
    params_.gate_bias = place.parameters.param(place.prefix + "router.bias");
    params_.activation = activation_kind(form.activation);
    params_.gated = form.gated;
    const std::string experts = place.prefix + "experts.";
    params_.in = place.parameters.param(experts + form.in_name() + ".weight");
    params_.in_bias = place.parameters.param(experts + form.in_name() + ".bias");
    params_.down = place.parameters.param(experts + "down.weight");
    params_.down_bias = place.parameters.param(experts + "down.bias");
    if (spec_.has_shared())
      shared_ = build_dense(spec_.shared(place.layer_spec.ffn), place.parameters, place.prefix + "shared_expert.");
  }

  Var forward(const ForwardContext& context, const Var& x, const LinearEnd& end) const override {
    if (!shared_) return routed(context, x, end);
    // Both join the residual stream behind the same dropout mask: that of their sum.
    const Var mid = shared(context, x, end);
    LinearEnd joined = end;
    joined.residual = &mid;
    return routed(context, x, joined);
  }

 private:
  Var shared(const ForwardContext& context, const Var& x, const LinearEnd& end) const {
    if (!shared_gate_) return shared_->forward(context, x, end);
    return gate_rows(context.op, shared_->forward(context, x, {}), linear(context.op, x, shared_gate_), end);
  }

  Var routed(const ForwardContext& context, const Var& x, const LinearEnd& end) const {
    if (!context.routers) return moe(context.op, x, params_, {}, context.layout, end, nullptr);
    MoeParams params = params_;
    params.router.capacity_factor = static_cast<float>(spec_.capacity_factor);
    params.jitter = context.dropout.jitter(site_, static_cast<float>(spec_.router_jitter_noise));
    const BalanceLosses losses{.balance = static_cast<float>(spec_.router_aux_loss_coef),
                               .per_sequence = spec_.aux_loss_scope == BalanceScope::kSequence,
                               .z = static_cast<float>(spec_.router_z_loss_coef),
                               .weight = context.routers->weight};
    return moe(context.op, x, params, losses, context.layout, end, &context.routers->statistics[name_]);
  }

  MoeSpec spec_;
  std::string name_;
  uint32_t site_;
  MoeParams params_;
  std::unique_ptr<FeedForward> shared_;  // null: none
  Param shared_gate_;
};

}  // namespace

std::unique_ptr<FeedForward> build_moe(const FfnPlace& place) { return std::make_unique<Moe>(place); }

}  // namespace transept
