// Mixture-of-experts layers as one op: y = residual + dropout(sum over the chosen experts of gate * expert(x)), each
// expert a feed-forward layer (ops/ffn.h), the gates those of a router (kernels/router.h). Rows are
// gathered by expert, and each projection is one grouped product over all experts, of tiles of (expert, rows, columns);
// then each row adds up its choices in order. Nothing depends on the threads, and nothing but capacity and expert
// choice lets one row change another.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/activation.h"
#include "kernels/router.h"
#include "ops/linear.h"
#include "ops/tape.h"
#include "tensor/batch_layout.h"

namespace transept {

struct MoeParams {
  RouterShape router;
  Param gate;            // the router [experts, x.width]
  Param gate_bias = {};  // added to its logits [experts]
  ActivationKind activation = ActivationKind::kSilu;
  bool gated = true;
  // [experts * in_width, x.width], in_width = F or 2F: those of one expert together, as FfnParams::in.
  Param in, in_bias = {};
  Param down, down_bias = {};  // [experts * y width, F]
  RouterJitter jitter;         // of the router's input; an epsilon of 0: none
};

// The losses of a router's balance. They are not added to any value: their gradients join that of the logits in the
// backward pass, times `weight`, and their values are in RouterStatistics.
struct BalanceLosses {
  float balance = 0;          // alpha of alpha * experts * sum_i f_i P_i
  bool per_sequence = false;  // the mean of that over sequences, instead of that of the batch
  float z = 0;                // beta of beta * mean(lse(logits)^2)
  float weight = 1;           // share of this batch in the step
};

// Of the rows in sequences. Written by every forward pass, so that a pass that runs again counts once.
struct RouterStatistics {
  std::vector<int64_t> load;                 // choices of each expert, dropped ones too
  double balance_loss = 0, z_loss = 0;       // times their coefficients; without `weight`
  double entropy = 0;                        // mean over rows, nats
  int64_t rows = 0, pairs = 0, dropped = 0;  // rows counted, choices, choices not computed
};

// Rows outside of `layout` are padding: they go to no expert (y = residual) and count nowhere. `end.bias` must be
// absent; `statistics` may be null.
Var moe(const OpContext& context, const Var& x, const MoeParams& params, const BalanceLosses& losses,
        const BatchLayout& layout, const LinearEnd& end, RouterStatistics* statistics);

}  // namespace transept
