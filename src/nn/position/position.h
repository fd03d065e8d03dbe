// Position modules, built from their specs. A kind overrides only the hooks it needs.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/parameters.h"
#include "ops/rope.h"
#include "spec/arch_spec.h"

namespace transept {

class Position {
 public:
  virtual ~Position() = default;
  // The table added to the token embeddings; absent: none.
  virtual Param embedding() const { return {}; }
  // Rotation angles of the positions below `positions` for heads of this size; null: queries and keys are not rotated.
  // Not thread-safe.
  virtual std::shared_ptr<const RotationTable> rotation(int64_t positions, int64_t head_dim) const {
    static_cast<void>(positions), static_cast<void>(head_dim);
    return nullptr;
  }
  // The first position that has no encoding; no bound by default.
  virtual int64_t end() const { return INT64_MAX; }
};

std::unique_ptr<Position> build(const NoPosition&, const ArchSpec& spec, const Parameters& parameters);
std::unique_ptr<Position> build(const LearnedPosition&, const ArchSpec& spec, const Parameters& parameters);
std::unique_ptr<Position> build(const RopePosition&, const ArchSpec& spec, const Parameters& parameters);

inline std::unique_ptr<Position> build_position(const ArchSpec& spec, const Parameters& parameters) {
  return std::visit([&](const auto& kind) { return build(kind, spec, parameters); }, spec.position);
}

}  // namespace transept
