// Position kinds.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "spec/fields.h"
#include "spec/kinds.h"
#include "spec/params.h"
#include "spec/rope_scaling.h"

namespace transept {

// What a position kind meets in a layer; 0: not known. `check` of a kind adds what cannot go together; `where` is the
// place of the position group.
struct PositionUse {
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t head_dim = 0;
  int64_t first_heads = 0;  // num_attention_heads of the first layer
};

// A kind with kOfStack is one for a whole stack: it is added to the embeddings, or has a table that all layers share.
// The others may differ from layer to layer.

struct NoPosition {
  static constexpr std::string_view kName = "none";
  static constexpr bool kOfStack = false;
  template <class V>
  void fields(V&) {}
  void declare(int64_t, int64_t, int64_t, ParamList&) const {}
  void check(const PositionUse&, const std::string&, Problems&) const {}
  bool operator==(const NoPosition&) const = default;
};

// A table of max_position_embeddings rows added to the token embeddings (GPT-2), behind `offset` rows that no token
// reads (OPT, BART and RoBERTa, whose checkpoints hold and count them). It has no row beyond its end.
struct LearnedPosition {
  static constexpr std::string_view kName = "learned";
  static constexpr bool kOfStack = true;
  int64_t offset = 0;
  template <class V>
  void fields(V& v) {
    v("offset", offset, Between{0, 65536}, "rows of the table before that of the first position, which no token reads");
  }
  void declare(int64_t hidden_size, int64_t max_positions, int64_t, ParamList& p) const {
    p.add("weight", {offset + max_positions, hidden_size}, Init::kNormal);
  }
  void check(const PositionUse&, const std::string&, Problems&) const {}
  bool operator==(const LearnedPosition&) const = default;
};

// Which features belong to one frequency: feature i and i + half, or 2i and 2i + 1.
enum class RopePairing { kHalfSplit, kInterleaved };
template <>
struct EnumNames<RopePairing> {
  static constexpr std::array<std::string_view, 2> kNames{"half_split", "interleaved"};
};

// The first transformer's waves (arXiv:1706.03762 section 3.5), added to the token embeddings: feature 2i at position p
// is sin(p * f_i) and feature 2i + 1 is cos(p * f_i), with f_i = theta^(-2i / hidden_size); in half-split pairing all
// sines come first (Marian). No parameters, no end.
struct SinusoidalPosition {
  static constexpr std::string_view kName = "sinusoidal";
  static constexpr bool kOfStack = true;
  double theta = 10000;
  RopePairing pairing = RopePairing::kInterleaved;
  template <class V>
  void fields(V& v) {
    v("theta", theta, Above{0}, "base of the inverse frequencies");
    v("pairing", pairing, Any{}, "interleaved: a sine, its cosine, the next sine; half_split: all sines come first");
  }
  void declare(int64_t, int64_t, int64_t, ParamList&) const {}
  void check(const PositionUse& use, const std::string& where, Problems& problems) const;

  std::vector<double> inv_freq(int64_t hidden_size) const { return plain_inv_freq(theta, hidden_size); }
  bool operator==(const SinusoidalPosition&) const = default;
};

// Rotary embedding of queries and keys (arXiv:2104.09864 section 3.2) with inv_freq[i] = theta^(-2i / rotated), scaled
// by a rule. Only the first `rotated` elements of a head turn. Half-split pairing joins element i with i + rotated / 2
// (the Hugging Face LLaMA code), interleaved pairing 2i with 2i + 1 (the paper, GPT-J).
struct RopePosition {
  static constexpr std::string_view kName = "rope";
  static constexpr bool kOfStack = false;
  double theta = 10000;
  double partial_rotary_factor = 1;
  RopePairing pairing = RopePairing::kHalfSplit;
  RopeScaling scaling = NoScaling{};
  template <class V>
  void fields(V& v) {
    v("theta", theta, Above{0}, "base of the inverse frequencies");
    v("partial_rotary_factor", partial_rotary_factor, AboveUpTo{0, 1},
      "share of a head's elements that turn, from its start");
    v("pairing", pairing, Any{}, "half_split: i turns with i + rotated / 2; interleaved: 2i with 2i + 1");
    v("scaling", scaling, Any{}, "rule that stretches positions beyond the trained length");
  }
  void declare(int64_t, int64_t, int64_t, ParamList&) const {}
  void check(const PositionUse& use, const std::string& where, Problems& problems) const;

  // Elements of a head that turn: rounded down, as in Hugging Face transformers.
  int64_t rotated(int64_t head_dim) const {
    return static_cast<int64_t>(static_cast<double>(head_dim) * partial_rotary_factor);
  }
  // For a sequence of `length` tokens; kinds without by_length give the same at every length.
  RopeAngles angles(int64_t head_dim, int64_t length, int64_t max_position_embeddings) const;
  bool by_length() const;
  bool operator==(const RopePosition&) const = default;
};

// Attention with linear biases (arXiv:2108.12409 section 3): -slope * |distance| is added to a head's scores.
struct AlibiPosition {
  static constexpr std::string_view kName = "alibi";
  static constexpr bool kOfStack = false;
  double max_bias = 8;
  template <class V>
  void fields(V& v) {
    v("max_bias", max_bias, Above{0}, "-log2 of the last head's slope, when the heads are a power of two");
  }
  void declare(int64_t, int64_t, int64_t, ParamList&) const {}
  void check(const PositionUse&, const std::string&, Problems&) const {}

  // With n the largest power of two up to `heads`: 2^(-max_bias * i / n) for i = 1 to n, then every other slope of 2n
  // heads from its first on (the authors' code, BLOOM and MPT).
  std::vector<double> slopes(int64_t heads) const;
  bool operator==(const AlibiPosition&) const = default;
};

// Relative position biases by bucket (arXiv:1910.10683 section 2.1): one learned number a bucket and head, shared by
// all layers. Half of the buckets are one distance each, the rest widen logarithmically up to max_distance, beyond
// which all distances share the last one. Without a causal mask, keys before and after the query have half of the
// buckets each.
struct T5Position {
  static constexpr std::string_view kName = "t5";
  static constexpr bool kOfStack = true;
  int64_t num_buckets = 32;
  int64_t max_distance = 128;
  template <class V>
  void fields(V& v) {
    v("num_buckets", num_buckets, Between{2, 65536}, "rows of the table of biases; even");
    v("max_distance", max_distance, AtLeast{2}, "distance from which all share a bucket");
  }
  void declare(int64_t, int64_t, int64_t num_attention_heads, ParamList& p) const {
    p.add("bias", {num_buckets, num_attention_heads}, Init::kNormal, {.shard = Shard::kColumns});
  }
  void check(const PositionUse& use, const std::string& where, Problems& problems) const;

  // `distance`: the query's position less the key's.
  int64_t bucket(int64_t distance, bool causal) const;
  bool operator==(const T5Position&) const = default;
};

using PositionKinds = Kinds<NoPosition, LearnedPosition, SinusoidalPosition, RopePosition, AlibiPosition, T5Position>;
using PositionSpec = PositionKinds::Any;

}  // namespace transept
