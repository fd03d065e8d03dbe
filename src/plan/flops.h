// Floating-point operations of a token. A multiply-add is two. `linear`: 2 x every matrix that multiplies the token,
// the head included even when it is the embedding table; the embedding lookup is free. `attention`: scores and weighted
// sum for one query token at the mean number of keys that it sees over a sequence of T tokens: causal, (T + 1) / 2
// without a window; bidirectional, T; the exact mean with a window. Training costs three times the forward pass. Norms,
// activations and softmax are not counted. Other people's figures follow other conventions; `conventions` has them by
// name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/parameters.h"
#include "spec/arch_spec.h"
#include "spec/recompute.h"

namespace transept {

// Training FLOPs a token as somebody counts them.
struct FlopConvention {
  std::string name, formula, source;
  double train_per_token = 0;
};

struct FlopCounts {
  int64_t linear_forward_per_token = 0;
  double attention_forward_per_token = 0;
  double attention_forward_per_token_full = 0;  // if every query saw every key: no causal mask, no window
  double forward_per_token = 0;
  double train_per_token = 0;
  double train_per_step = 0;       // batch x context tokens
  double recompute_per_token = 0;  // that recomputation adds; no part of train_per_token
  // Latent attention, of all layers: one query against one cached key in either form, and what the expanded form pays
  // for each cached token in each step. 0 without latents.
  int64_t absorbed_per_cached_key = 0, expanded_per_cached_key = 0, expansion_per_cached_token = 0;
  std::vector<FlopConvention> conventions;
};

// The context is in tokens; `source_context` is that of an encoder-decoder's source.
FlopCounts count_flops(const ArchSpec& spec, const ParameterCounts& parameters, int64_t context, int64_t source_context,
                       Recompute recompute);

// Mean over the queries of a sequence of the keys that each sees.
double mean_attended(const LayerSpec& layer, int64_t context);

}  // namespace transept
