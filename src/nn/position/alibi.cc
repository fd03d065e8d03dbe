// Attention with linear biases (arXiv:2108.12409 section 3): -slope * |query position - key position|, a constant of
// the head and the distance. With a causal mask this is the published bias; the absolute value is the usual form
// without.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "nn/position/position.h"

namespace transept {
namespace {

class Alibi final : public Position {
 public:
  explicit Alibi(const AlibiPosition& kind) : kind_(kind) {}

  ScoreBias score_bias(int64_t heads, int64_t kv_heads, bool causal, int64_t positions) const override {
    Known& known = known_[{heads, kv_heads, causal}];
    if (known.positions < positions) {
      // Grows by doubling, so that decoding token by token seldom computes.
      known.positions = std::max({positions, 2 * known.positions, int64_t{256}});
      known.bias = make(heads, kv_heads, causal, known.positions);
    }
    return known.bias;
  }

 private:
  struct Known {
    int64_t positions = 0;
    ScoreBias bias;
  };

  ScoreBias make(int64_t heads, int64_t kv_heads, bool causal, int64_t positions) const {
    const std::vector<double> slopes = kind_.slopes(heads);
    ScoreBias bias;
    bias.first = causal ? 0 : -(positions - 1);
    bias.distances = positions - bias.first;
    const size_t group = static_cast<size_t>(heads / kv_heads);
    std::vector<float> table;
    table.reserve(static_cast<size_t>(heads * bias.distances));
    for (size_t g = 0; g < static_cast<size_t>(kv_heads); ++g) {
      for (int64_t distance = bias.first; distance < positions; ++distance) {
        for (size_t h = 0; h < group; ++h)
          table.push_back(static_cast<float>(-slopes[g * group + h] * std::abs(static_cast<double>(distance))));
      }
    }
    bias.table = std::make_shared<const std::vector<float>>(std::move(table));
    return bias;
  }

  AlibiPosition kind_;
  mutable std::map<std::tuple<int64_t, int64_t, bool>, Known> known_;
};

}  // namespace

std::unique_ptr<Position> build(const AlibiPosition& kind, const ArchSpec&, const Parameters&, const std::string&) {
  return std::make_unique<Alibi>(kind);
}

}  // namespace transept
