// Rotary positions (arXiv:2104.09864 section 3.2): pair i at position p turns by p * inv_freq[i], which the spec's rule
// gives. Angles are computed in double.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "nn/position/position.h"

namespace transept {
namespace {

class Rope final : public Position {
 public:
  Rope(const RopePosition& kind, int64_t max_position_embeddings)
      : kind_(kind), max_position_embeddings_(max_position_embeddings) {}

  std::shared_ptr<const RotationTable> rotation(int64_t positions, int64_t head_dim, int64_t length) const override {
    std::map<int64_t, std::shared_ptr<const RotationTable>>& tables = tables_[head_dim];
    const int64_t by = kind_.by_length() ? length : 0;
    const auto known = tables.find(by);
    if (known != tables.end() && known->second->positions >= positions) return known->second;
    // Grows by doubling, so that decoding token by token makes few tables.
    auto table = make(std::max(positions, known != tables.end() ? 2 * known->second->positions : int64_t{256}),
                      head_dim, length);
    // Sequences of many lengths, one after another, must not fill the memory.
    size_t kept = table->cos.size();
    for (const auto& [other, of_other] : tables) kept += of_other->cos.size();
    if (kept > kKept) tables.clear();
    tables[by] = table;
    return table;
  }

  double score_factor(int64_t rotated) const override {
    return kind_.angles(rotated, max_position_embeddings_, max_position_embeddings_).score_factor;
  }

 private:
  static constexpr size_t kKept = size_t{1} << 23;  // cosines of one head size

  std::shared_ptr<const RotationTable> make(int64_t positions, int64_t head_dim, int64_t length) const {
    const RopeAngles angles = kind_.angles(head_dim, length, max_position_embeddings_);
    auto table = std::make_shared<RotationTable>();
    table->pairs = static_cast<int64_t>(angles.inv_freq.size());
    table->positions = positions;
    table->interleaved = kind_.pairing == RopePairing::kInterleaved;
    const size_t size = static_cast<size_t>(positions * table->pairs);
    table->cos.resize(size);
    table->sin.resize(size);
    for (int64_t i = 0; i < table->pairs; ++i) {
      const double inv_freq = angles.inv_freq[static_cast<size_t>(i)];
      for (int64_t p = 0; p < positions; ++p) {
        const size_t at = static_cast<size_t>(p * table->pairs + i);
        table->cos[at] = static_cast<float>(angles.amplitude * std::cos(static_cast<double>(p) * inv_freq));
        table->sin[at] = static_cast<float>(angles.amplitude * std::sin(static_cast<double>(p) * inv_freq));
      }
    }
    return table;
  }

  RopePosition kind_;
  int64_t max_position_embeddings_;
  // By head size, then by length where the rule looks at it.
  mutable std::map<int64_t, std::map<int64_t, std::shared_ptr<const RotationTable>>> tables_;
};

}  // namespace

std::unique_ptr<Position> build(const RopePosition& kind, const ArchSpec& spec, const Parameters&, const std::string&) {
  return std::make_unique<Rope>(kind, spec.max_position_embeddings);
}

}  // namespace transept
