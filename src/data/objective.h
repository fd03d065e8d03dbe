// What a model is trained to predict: the next token (GPT), masked tokens (BERT, arXiv:1810.04805), dropped spans (T5,
// arXiv:1910.10683), the text behind a noisy one (BART, arXiv:1910.13461), or the target of a pair.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "spec/arch_spec.h"

namespace transept {

enum class Objective { kCausal, kMlm, kSpan, kDenoise, kSeq2seq };

std::string_view objective_name(Objective objective);
std::optional<Objective> objective_from_name(std::string_view name);

// Which stacks a topology has.
struct Stacks {
  bool encoder, decoder;
};
Stacks stacks_of(Topology topology);

// A decoder alone: causal; an encoder alone: masked tokens; both: pairs where the data are pairs, else spans.
Objective default_objective(Stacks stacks, bool data_are_pairs);
// InputError naming --objective where these stacks cannot be trained so.
void check_objective(Objective objective, Stacks stacks);

}  // namespace transept
