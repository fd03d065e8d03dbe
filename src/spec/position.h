// Position kinds.
#pragma once

#include <cstdint>
#include <string_view>

#include "spec/fields.h"
#include "spec/kinds.h"
#include "spec/params.h"

namespace transept {

struct NoPosition {
  static constexpr std::string_view kName = "none";
  template <class V>
  void fields(V&) {}
  void declare(int64_t, int64_t, ParamList&) const {}
};

// A table of max_position_embeddings rows added to the token embeddings (GPT-2). It has no row beyond its end.
struct LearnedPosition {
  static constexpr std::string_view kName = "learned";
  template <class V>
  void fields(V&) {}
  void declare(int64_t hidden_size, int64_t max_positions, ParamList& p) const {
    p.add("weight", {max_positions, hidden_size}, Init::kNormal);
  }
};

// Rotary embedding of queries and keys (arXiv:2104.09864 section 3.2), pairing element i with i + head_dim/2
// ("half-split", as in the Hugging Face LLaMA code): inv_freq[i] = theta^(-2i / head_dim).
struct RopePosition {
  static constexpr std::string_view kName = "rope";
  double theta = 10000;
  template <class V>
  void fields(V& v) {
    v("theta", theta, Above{0}, "base of the inverse frequencies");
  }
  void declare(int64_t, int64_t, ParamList&) const {}
};

// Kinds that are added to the token embeddings; the others act inside attention.
inline bool position_in_embedding(const std::variant<NoPosition, LearnedPosition, RopePosition>& any) {
  return std::holds_alternative<LearnedPosition>(any);
}

using PositionKinds = Kinds<NoPosition, LearnedPosition, RopePosition>;
using PositionSpec = PositionKinds::Any;

}  // namespace transept
