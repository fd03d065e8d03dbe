// Position modules, built from their specs. A kind overrides only the hooks it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nn/parameters.h"
#include "ops/rope.h"
#include "ops/score_bias.h"
#include "spec/arch_spec.h"

namespace transept {

// What a hook returns may stand on tables that grow with what is asked, so no two threads may ask one module at once.
class Position {
 public:
  virtual ~Position() = default;
  // The table added to the token embeddings, [at least `positions`, hidden]; absent: none. It is valid until the next
  // call. A learned table may have fewer rows: see end().
  virtual Param embedding(int64_t positions) const {
    static_cast<void>(positions);
    return {};
  }
  // Rotation angles of the positions below `positions` for heads of this size, in a sequence of `length` tokens in all;
  // null: queries and keys are not rotated. Rules that stretch positions may choose by the length: the same one always
  // gives the same angles. With a cache, give its capacity, so that keys of every step are rotated alike.
  virtual std::shared_ptr<const RotationTable> rotation(int64_t positions, int64_t head_dim, int64_t length) const {
    static_cast<void>(positions), static_cast<void>(head_dim), static_cast<void>(length);
    return nullptr;
  }
  // A factor on all scores of heads of which `rotated` elements turn and the others by design don't.
  virtual double score_factor(int64_t rotated) const {
    static_cast<void>(rotated);
    return 1;
  }
  // What is added to the scores of queries and keys at positions below `positions`: distances from 0, or without a
  // causal mask from -(positions - 1), to positions - 1, and maybe more on either side. Empty: nothing is added.
  virtual ScoreBias score_bias(int64_t heads, int64_t kv_heads, bool causal, int64_t positions) const {
    static_cast<void>(heads), static_cast<void>(kv_heads), static_cast<void>(causal), static_cast<void>(positions);
    return {};
  }
  // The first position that has no encoding; no bound by default.
  virtual int64_t end() const { return INT64_MAX; }
};

// `prefix` is that of the module's parameters ("position.").
std::unique_ptr<Position> build(const NoPosition& kind, const ArchSpec& spec, const Parameters& parameters,
                                const std::string& prefix);
std::unique_ptr<Position> build(const LearnedPosition& kind, const ArchSpec& spec, const Parameters& parameters,
                                const std::string& prefix);
std::unique_ptr<Position> build(const SinusoidalPosition& kind, const ArchSpec& spec, const Parameters& parameters,
                                const std::string& prefix);
std::unique_ptr<Position> build(const RopePosition& kind, const ArchSpec& spec, const Parameters& parameters,
                                const std::string& prefix);
std::unique_ptr<Position> build(const AlibiPosition& kind, const ArchSpec& spec, const Parameters& parameters,
                                const std::string& prefix);
std::unique_ptr<Position> build(const T5Position& kind, const ArchSpec& spec, const Parameters& parameters,
                                const std::string& prefix);

inline std::unique_ptr<Position> build_position(const PositionSpec& any, const ArchSpec& spec,
                                                const Parameters& parameters, const std::string& prefix) {
  return std::visit([&](const auto& kind) { return build(kind, spec, parameters, prefix); }, any);
}

}  // namespace transept
