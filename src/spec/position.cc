// Formulas and conditions of the position kinds; papers and sections in position.h.
#include "spec/position.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <variant>

namespace transept {

void SinusoidalPosition::check(const PositionUse& use, const std::string& where, Problems& problems) const {
  if (use.hidden_size % 2 != 0)
    problems.push_back(
        {where + ".kind",
         "sinusoidal pairs a sine with a cosine, and hidden_size = " + std::to_string(use.hidden_size) + " is odd",
         "give an even hidden_size, or another position kind"});
}

void RopePosition::check(const PositionUse& use, const std::string& where, Problems& problems) const {
  if (use.head_dim == 0) return;
  const int64_t turning = rotated(use.head_dim);
  // A head that turns whole and is odd is the attention's own mistake, and reported there.
  if (turning < 2 || turning % 2 != 0) {
    if (partial_rotary_factor < 1)
      problems.push_back({where + ".partial_rotary_factor",
                          std::to_string(turning) + " of the " + std::to_string(use.head_dim) +
                              " elements of a head would turn, and they turn in pairs",
                          "give a share that makes an even number of at least 2"});
    return;
  }
  const RopeQuery query{.theta = theta, .rotated = turning};
  std::visit(
      [&](const auto& rule) {
        if constexpr (requires { rule.check(query, where, problems); }) rule.check(query, where, problems);
      },
      scaling);
}

RopeAngles RopePosition::angles(int64_t head_dim, int64_t length, int64_t max_position_embeddings) const {
  const RopeQuery query{theta, rotated(head_dim), length, max_position_embeddings};
  return std::visit([&](const auto& rule) { return rule.angles(query); }, scaling);
}

bool RopePosition::by_length() const {
  return std::visit([](const auto& rule) { return rule.kByLength; }, scaling);
}

std::vector<double> AlibiPosition::slopes(int64_t heads) const {
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  const auto slope = [&](int64_t i, int64_t of) {
    return std::exp2(-max_bias * static_cast<double>(i) / static_cast<double>(of));
  };
  std::vector<double> all;
  for (int64_t i = 1; i <= power; ++i) all.push_back(slope(i, power));
  for (int64_t i = 1; static_cast<int64_t>(all.size()) < heads; i += 2) all.push_back(slope(i, 2 * power));
  return all;
}

void T5Position::check(const PositionUse& use, const std::string& where, Problems& problems) const {
  if (num_buckets % 2 != 0)
    problems.push_back({where + ".num_buckets",
                        std::to_string(num_buckets) + " is odd, and half of them are one distance each",
                        "give an even number"});
  if (max_distance <= num_buckets / 2)
    problems.push_back(
        {where + ".max_distance",
         std::to_string(max_distance) + " is within the first half of the buckets, which are one distance each",
         "give more than num_buckets / 2 = " + std::to_string(num_buckets / 2)});
  if (use.num_attention_heads != 0 && use.first_heads != 0 && use.num_attention_heads != use.first_heads)
    problems.push_back({where + ".kind",
                        "t5 has one table of biases for all layers, and layers have " +
                            std::to_string(use.first_heads) + " and " + std::to_string(use.num_attention_heads) +
                            " heads",
                        "give every layer as many, or another position kind"});
}

int64_t T5Position::bucket(int64_t distance, bool causal) const {
  const int64_t buckets = causal ? num_buckets : num_buckets / 2;
  // Keys after the query have the second half; with a causal mask there are none.
  const int64_t base = !causal && distance < 0 ? buckets : 0;
  const int64_t away = causal ? std::max<int64_t>(distance, 0) : std::abs(distance);
  const int64_t exact = buckets / 2;
  if (away < exact) return base + away;
  if (exact == 0) return base;
  // Where the quotient of logarithms is whole, it must not fall just below; whole numbers apart, it is not that close.
  const double share = std::log(static_cast<double>(away) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  const double steps = share * static_cast<double>(buckets - exact) + 1e-9;
  return base + (share >= 1 ? buckets - 1 : std::min(exact + static_cast<int64_t>(steps), buckets - 1));
}

}  // namespace transept
