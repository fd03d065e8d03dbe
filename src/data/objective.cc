#include "data/objective.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace transept {
namespace {

constexpr std::array<std::pair<Objective, std::string_view>, 5> kNames{{{Objective::kCausal, "causal"},
                                                                        {Objective::kMlm, "mlm"},
                                                                        {Objective::kSpan, "span"},
                                                                        {Objective::kDenoise, "denoise"},
                                                                        {Objective::kSeq2seq, "seq2seq"}}};

}  // namespace

std::string_view objective_name(Objective objective) {
  for (const auto& [kind, name] : kNames) {
    if (kind == objective) return name;
  }
  TRANSEPT_CHECK(false);
  return {};
}

std::optional<Objective> objective_from_name(std::string_view name) {
  for (const auto& [kind, known] : kNames) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

Stacks stacks_of(Topology topology) {
  switch (topology) {
    case Topology::kDecoder:
      return {.encoder = false, .decoder = true};
    case Topology::kEncoder:
      return {.encoder = true, .decoder = false};
    case Topology::kEncoderDecoder:
      return {.encoder = true, .decoder = true};
  }
  TRANSEPT_CHECK(false);
  return {};
}

Objective default_objective(Stacks stacks, bool data_are_pairs) {
  if (!stacks.encoder) return Objective::kCausal;
  if (!stacks.decoder) return Objective::kMlm;
  return data_are_pairs ? Objective::kSeq2seq : Objective::kSpan;
}

void check_objective(Objective objective, Stacks stacks) {
  const std::string got = std::string(objective_name(objective));
  if (stacks.encoder && stacks.decoder) {
    if (objective == Objective::kCausal || objective == Objective::kMlm)
      throw InputError("--objective", got + " does not fit an encoder-decoder", "allowed are span, denoise, seq2seq");
  } else if (objective != default_objective(stacks, false)) {
    throw InputError("--objective",
                     got + " does not fit a model that is " + (stacks.encoder ? "an encoder" : "a decoder") + " only",
                     "allowed is " + std::string(objective_name(default_objective(stacks, false))));
  }
}

}  // namespace transept
