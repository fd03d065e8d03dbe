// Rotary positions (arXiv:2104.09864 section 3.2): angle of pair i at position p is p * theta^(-2i / head_dim). Angles
// are computed in double.
#include <algorithm>
#include <cmath>
#include <map>

#include "nn/position/position.h"

namespace transept {
namespace {

class Rope final : public Position {
 public:
  explicit Rope(double theta) : theta_(theta) {}

  std::shared_ptr<const RotationTable> rotation(int64_t positions, int64_t head_dim) const override {
    std::shared_ptr<const RotationTable>& table = tables_[head_dim];
    if (!table || table->positions < positions) {
      // Grows by doubling, so that decoding token by token makes few tables.
      table = make(std::max(positions, table ? 2 * table->positions : int64_t{256}), head_dim);
    }
    return table;
  }

 private:
  std::shared_ptr<const RotationTable> make(int64_t positions, int64_t head_dim) const {
    auto table = std::make_shared<RotationTable>();
    table->pairs = head_dim / 2;
    table->positions = positions;
    const size_t size = static_cast<size_t>(positions * table->pairs);
    table->cos.resize(size);
    table->sin.resize(size);
    for (int64_t i = 0; i < table->pairs; ++i) {
      const double inv_freq = std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      for (int64_t p = 0; p < positions; ++p) {
        const size_t at = static_cast<size_t>(p * table->pairs + i);
        table->cos[at] = static_cast<float>(std::cos(static_cast<double>(p) * inv_freq));
        table->sin[at] = static_cast<float>(std::sin(static_cast<double>(p) * inv_freq));
      }
    }
    return table;
  }

  double theta_;
  mutable std::map<int64_t, std::shared_ptr<const RotationTable>> tables_;  // by head size
};

}  // namespace

std::unique_ptr<Position> build(const RopePosition& kind, const ArchSpec&, const Parameters&) {
  return std::make_unique<Rope>(kind.theta);
}

}  // namespace transept
