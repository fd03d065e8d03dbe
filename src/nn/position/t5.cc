// Relative position biases by bucket (arXiv:1910.10683 section 2.1): one learned number a bucket and head, for all
// layers. The table is read from the parameter at each call, since training changes it.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "nn/position/position.h"

namespace transept {
namespace {

class T5 final : public Position {
 public:
  T5(const T5Position& kind, Param parameter) : kind_(kind), parameter_(parameter) {}

  ScoreBias score_bias(int64_t heads, int64_t kv_heads, bool causal, int64_t positions) const override {
    TRANSEPT_CHECK(heads == parameter_.in && positions >= 1);
    ScoreBias bias;
    bias.first = causal ? 0 : -(positions - 1);
    bias.distances = positions - bias.first;
    bias.parameter = parameter_;
    const std::vector<int32_t>& before = buckets_from_zero(causal ? causal_ : before_, positions, causal, +1);
    if (!causal) {
      const std::vector<int32_t>& ahead = buckets_from_zero(ahead_, positions, false, -1);
      for (int64_t away = positions - 1; away > 0; --away) bias.bucket.push_back(ahead[static_cast<size_t>(away)]);
    }
    bias.bucket.insert(bias.bucket.end(), before.begin(), before.begin() + positions);
    const int64_t group = heads / kv_heads;
    std::vector<float> table;
    table.reserve(static_cast<size_t>(heads * bias.distances));
    for (int64_t g = 0; g < kv_heads; ++g) {
      for (const int32_t b : bias.bucket) {
        const float* row = parameter_.value + b * heads + g * group;
        table.insert(table.end(), row, row + group);
      }
    }
    bias.table = std::make_shared<const std::vector<float>>(std::move(table));
    return bias;
  }

 private:
  // Buckets of the distances 0, sign, 2 * sign, ...; kept, and grown by doubling.
  const std::vector<int32_t>& buckets_from_zero(std::vector<int32_t>& known, int64_t positions, bool causal,
                                                int64_t sign) const {
    int64_t away = static_cast<int64_t>(known.size());
    if (away < positions) {
      for (const int64_t end = std::max(positions, 2 * away); away < end; ++away)
        known.push_back(static_cast<int32_t>(kind_.bucket(sign * away, causal)));
    }
    return known;
  }

  T5Position kind_;
  Param parameter_;                                       // [buckets, heads]
  mutable std::vector<int32_t> causal_, before_, ahead_;  // of keys before the query with and without a mask, and after
};

}  // namespace

std::unique_ptr<Position> build(const T5Position& kind, const ArchSpec&, const Parameters& parameters,
                                const std::string& prefix) {
  return std::make_unique<T5>(kind, parameters.param(prefix + "bias"));
}

}  // namespace transept
