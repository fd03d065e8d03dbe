// Choices are made without scratch memory: the next choice is the best that stands behind the last one, in the order of
// falling score and rising index; a group of experts is allowed if it does not stand behind the last chosen group.
#include "kernels/router.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/rng.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/router.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;

void CombineRows(ConstRows x, const int32_t* position, const float* gate, int64_t slots, bool accumulate, Rows y) {
  const DF d;
  for (int64_t r = 0; r < y.rows; ++r) {
    const int32_t* at = position + r * slots;
    float* to = y.row(r);
    ForLanes(d, y.width, [&](int64_t i, auto part) HWY_ATTR {
      auto sum = accumulate ? part.Load(d, to + i) : hn::Zero(d);
      for (int64_t s = 0; s < slots; ++s) {
        if (at[s] < 0) continue;
        const auto v = part.Load(d, x.row(at[s]) + i);
        sum = gate != nullptr ? hn::MulAdd(hn::Set(d, gate[r * slots + s]), v, sum) : hn::Add(sum, v);
      }
      part.Store(sum, d, to + i);
    });
  }
}

void AddDotsAndGateRows(ConstRows x, const float* gate, Rows a, float* dots) {
  const DF d;
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* from = x.row(r);
    float* to = a.row(r);
    const auto factor = hn::Set(d, gate[r]);
    dots[r] += SumLanes(d, a.width, [&](int64_t i, auto part, auto& sum) HWY_ATTR {
      const auto v = part.Load(d, to + i);
      sum = hn::MulAdd(part.Load(d, from + i), v, sum);
      part.Store(hn::Mul(v, factor), d, to + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(CombineRows);
HWY_EXPORT(AddDotsAndGateRows);

namespace {

// What a score is compared as: a NaN stands behind every number.
float comparable(float score) { return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score; }

// The order of choices: falling score, rising index.
struct Candidate {
  float score = 0;
  int64_t index = -1;  // -1: none
  bool before(const Candidate& other) const {
    return score > other.score || (score == other.score && index < other.index);
  }
};

// The first of `count` candidates that stands behind `last`.
template <class Score>
Candidate next_choice(const Candidate& last, int64_t count, const Score& score_of) {
  Candidate best;
  for (int64_t i = 0; i < count; ++i) {
    const Candidate c{score_of(i), i};
    if ((last.index < 0 || last.before(c)) && (best.index < 0 || c.before(best))) best = c;
  }
  return best;
}

// One row's scores as they are compared.
class Comparison {
 public:
  Comparison(const RouterShape& shape, const float* values) : shape_(shape), values_(values) {}

  float expert(int64_t e) const {
    return comparable(shape_.bias == nullptr ? values_[e] : values_[e] + shape_.bias[e]);
  }
  float group(int64_t g) const {
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    const int64_t size = shape_.experts / shape_.groups;
    float best = kLowest, second = kLowest;
    for (int64_t e = g * size; e < (g + 1) * size; ++e) {
      const float v = expert(e);
      if (v > best) {
        second = best;
        best = v;
      } else if (v > second) {
        second = v;
      }
    }
    return shape_.group_score == GroupScore::kMax || size == 1 ? best : comparable(best + second);
  }

 private:
  const RouterShape& shape_;
  const float* values_;
};

double exponential_sum(const float* logits, int64_t n, double maximum) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - maximum);
  return sum;
}

double maximum_of(const float* x, int64_t n) { return static_cast<double>(*std::max_element(x, x + n)); }

double sigmoid(float logit) { return 1 / (1 + std::exp(-static_cast<double>(logit))); }
// sigmoid'(x) = sigmoid(x) sigmoid(-x), which does not lose the small factor to a difference from 1.
double sigmoid_slope(float logit) { return sigmoid(logit) * sigmoid(-logit); }

// Added to the sum of chosen sigmoids, as DeepSeek-V3's published code does.
constexpr double kSigmoidSum = 1e-20;

// A softmax over all experts whose chosen part is normalized is the softmax over the chosen, which cannot be 0 / 0.
bool softmax_of_chosen(const RouterShape& s) {
  return s.score == RouterScore::kSoftmaxOfChosen || (s.score == RouterScore::kSoftmax && s.normalize);
}

void gates_of_row(const RouterShape& s, const float* logits, const float* scores, const int32_t* expert, float* gate) {
  const double scaling = static_cast<double>(s.scaling);
  if (softmax_of_chosen(s)) {
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < s.top_k; ++k) maximum = std::max(maximum, static_cast<double>(logits[expert[k]]));
    for (int64_t k = 0; k < s.top_k; ++k) sum += std::exp(static_cast<double>(logits[expert[k]]) - maximum);
    for (int64_t k = 0; k < s.top_k; ++k) {
      gate[k] = static_cast<float>(scaling * std::exp(static_cast<double>(logits[expert[k]]) - maximum) / sum);
    }
    return;
  }
  double divisor = 1;
  if (s.score == RouterScore::kSigmoid && s.normalize) {
    divisor = kSigmoidSum;
    for (int64_t k = 0; k < s.top_k; ++k) divisor += static_cast<double>(scores[expert[k]]);
  }
  for (int64_t k = 0; k < s.top_k; ++k) {
    gate[k] = static_cast<float>(scaling * static_cast<double>(scores[expert[k]]) / divisor);
  }
}

// The part of d_logits that comes through gates, in tokens' choice among sigmoids or the chosen: it is 0 for experts
// that were not chosen.
void add_chosen_gradient(const RouterShape& s, const float* logits, const int32_t* expert, const float* d_gate,
                         float* d_logits) {
  const double scaling = static_cast<double>(s.scaling);
  if (softmax_of_chosen(s)) {
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0, mean = 0;
    for (int64_t k = 0; k < s.top_k; ++k) maximum = std::max(maximum, static_cast<double>(logits[expert[k]]));
    const auto weight = [&](int64_t k) { return std::exp(static_cast<double>(logits[expert[k]]) - maximum); };
    for (int64_t k = 0; k < s.top_k; ++k) {
      sum += weight(k);
      mean += weight(k) * static_cast<double>(d_gate[k]);
    }
    mean /= sum;
    for (int64_t k = 0; k < s.top_k; ++k) {
      d_logits[expert[k]] += static_cast<float>(scaling * weight(k) / sum * (static_cast<double>(d_gate[k]) - mean));
    }
    return;
  }
  double divisor = 1, along = 0;
  if (s.normalize) {
    divisor = kSigmoidSum;
    for (int64_t k = 0; k < s.top_k; ++k) {
      divisor += sigmoid(logits[expert[k]]);
      along += sigmoid(logits[expert[k]]) * static_cast<double>(d_gate[k]);
    }
    along /= divisor;
  }
  for (int64_t k = 0; k < s.top_k; ++k) {
    const float logit = logits[expert[k]];
    d_logits[expert[k]] +=
        static_cast<float>(scaling * (static_cast<double>(d_gate[k]) - along) / divisor * sigmoid_slope(logit));
  }
}

// Gates that are the softmax over all experts.
bool gates_of_all(const RouterShape& s) { return s.score == RouterScore::kSoftmax && !s.normalize; }

int64_t ceil_of(double x) { return static_cast<int64_t>(std::ceil(x)); }

}  // namespace

void check_router(const RouterShape& s) {
  TRANSEPT_CHECK(s.experts >= 1 && s.top_k >= 1 && s.top_k <= s.experts);
  TRANSEPT_CHECK(s.groups >= 1 && s.experts % s.groups == 0 && s.groups_chosen >= 1 && s.groups_chosen <= s.groups);
  TRANSEPT_CHECK(s.experts / s.groups * s.groups_chosen >= s.top_k && s.capacity_factor >= 0);
  if (s.choice == RouterChoice::kExperts) {
    TRANSEPT_CHECK(s.score == RouterScore::kSoftmax && !s.normalize && s.groups == 1 && s.bias == nullptr &&
                   s.capacity_factor == 0);
  }
}

Routing::Routing(const RouterShape& shape, int64_t rows_)
    : rows(rows_),
      slots(shape.slots()),
      expert(static_cast<size_t>(rows_ * shape.slots()), kNoExpert),
      gate(expert.size()),
      offsets(static_cast<size_t>(shape.experts) + 1),
      position(expert.size(), -1) {
  TRANSEPT_CHECK(rows * slots <= std::numeric_limits<int32_t>::max());
}

void router_scores(const RouterShape& shape, ConstRows logits, Rows scores) {
  for (int64_t r = 0; r < logits.rows; ++r) {
    const float* l = logits.row(r);
    float* to = scores.row(r);
    if (shape.score == RouterScore::kSigmoid) {
      for (int64_t e = 0; e < shape.experts; ++e) to[e] = static_cast<float>(sigmoid(l[e]));
      continue;
    }
    const double maximum = maximum_of(l, shape.experts), sum = exponential_sum(l, shape.experts, maximum);
    for (int64_t e = 0; e < shape.experts; ++e) {
      to[e] = static_cast<float>(std::exp(static_cast<double>(l[e]) - maximum) / sum);
    }
  }
}

void choose_experts(const RouterShape& shape, ConstRows logits, ConstRows scores, int32_t* expert, float* gate) {
  for (int64_t r = 0; r < logits.rows; ++r) {
    const float* l = logits.row(r);
    const Comparison comparison(shape, shape.score == RouterScore::kSoftmaxOfChosen ? l : scores.row(r));
    const bool grouped = shape.groups_chosen < shape.groups;
    Candidate last_group;
    for (int64_t g = 0; grouped && g < shape.groups_chosen; ++g) {
      last_group = next_choice(last_group, shape.groups, [&](int64_t i) { return comparison.group(i); });
    }
    int32_t* chosen = expert + r * shape.top_k;
    Candidate last;
    for (int64_t k = 0; k < shape.top_k; ++k) {
      if (!grouped) {
        last = next_choice(last, shape.experts, [&](int64_t e) { return comparison.expert(e); });
      } else {
        Candidate best;
        const int64_t size = shape.experts / shape.groups;
        for (int64_t g = 0; g < shape.groups; ++g) {
          if (last_group.before({comparison.group(g), g})) continue;
          for (int64_t e = g * size; e < (g + 1) * size; ++e) {
            const Candidate c{comparison.expert(e), e};
            if ((last.index < 0 || last.before(c)) && (best.index < 0 || c.before(best))) best = c;
          }
        }
        last = best;
      }
      chosen[k] = static_cast<int32_t>(last.index);
    }
    gates_of_row(shape, l, scores.row(r), chosen, gate + r * shape.top_k);
  }
}

void choose_rows(const RouterShape& shape, ConstRows scores, int32_t* expert, float* gate, int32_t* scratch) {
  const int64_t per_expert = (scores.rows * shape.top_k + shape.experts - 1) / shape.experts;
  std::fill_n(expert, scores.rows * shape.experts, kNoExpert);
  std::fill_n(gate, scores.rows * shape.experts, 0.0f);
  for (int64_t e = 0; e < shape.experts; ++e) {
    for (int64_t r = 0; r < scores.rows; ++r) scratch[r] = static_cast<int32_t>(r);
    std::nth_element(scratch, scratch + per_expert, scratch + scores.rows, [&](int32_t a, int32_t b) {
      return Candidate{comparable(scores.row(a)[e]), a}.before({comparable(scores.row(b)[e]), b});
    });
    for (int64_t i = 0; i < per_expert; ++i) {
      const int64_t at = scratch[i] * shape.experts + e;
      expert[at] = static_cast<int32_t>(e);
      gate[at] = shape.scaling * scores.row(scratch[i])[e];
    }
  }
}

int64_t router_capacity(const RouterShape& shape, int64_t rows) {
  if (shape.capacity_factor == 0) return -1;
  return ceil_of(static_cast<double>(shape.capacity_factor) * static_cast<double>(rows * shape.top_k) /
                 static_cast<double>(shape.experts));
}

void group_by_expert(int64_t capacity, Routing& routing) {
  const int64_t rows = routing.rows, slots = routing.slots, pairs = rows * slots;
  std::vector<int64_t>& offsets = routing.offsets;
  std::fill(offsets.begin(), offsets.end(), 0);
  routing.chosen = routing.dropped = 0;
  // offsets[e + 1] counts the choices of e. Here position only says whether a pair is computed.
  const auto take = [&](int64_t p) {
    const size_t at = static_cast<size_t>(p);
    routing.position[at] = -1;
    if (routing.expert[at] == kNoExpert) return;
    ++routing.chosen;
    int64_t& count = offsets[static_cast<size_t>(routing.expert[at]) + 1];
    if (capacity >= 0 && count == capacity) {
      routing.gate[at] = 0;
      ++routing.dropped;
      return;
    }
    ++count;
    routing.position[at] = 0;
  };
  for (int64_t s = 0; s < slots; ++s) {
    for (int64_t r = 0; r < rows; ++r) take(r * slots + s);
  }
  for (size_t e = 1; e < offsets.size(); ++e) offsets[e] += offsets[e - 1];
  routing.pair.resize(static_cast<size_t>(offsets.back()));
  // Each start moves up to the next one while its expert's places fill, and all move back by one at the end.
  for (int64_t p = 0; p < pairs; ++p) {
    const size_t at = static_cast<size_t>(p);
    if (routing.position[at] < 0) continue;
    const int64_t place = offsets[static_cast<size_t>(routing.expert[at])]++;
    routing.position[at] = static_cast<int32_t>(place);
    routing.pair[static_cast<size_t>(place)] = static_cast<int32_t>(p);
  }
  std::copy_backward(offsets.begin(), offsets.end() - 1, offsets.end());
  offsets[0] = 0;
}

void count_choices(const int32_t* expert, int64_t pairs, int64_t* load) {
  for (int64_t p = 0; p < pairs; ++p) {
    if (expert[p] != kNoExpert) ++load[expert[p]];
  }
}

void add_router_sums(const RouterShape& shape, ConstRows logits, ConstRows scores, RouterSums& sums) {
  const int64_t n = shape.experts;
  for (int64_t r = 0; r < logits.rows; ++r) {
    const float *l = logits.row(r), *p = scores.row(r);
    const double maximum = maximum_of(l, n), lse = maximum + std::log(exponential_sum(l, n, maximum));
    sums.squared_lse += lse * lse;
    double total = 1;
    if (shape.score == RouterScore::kSigmoid) {
      total = 0;
      for (int64_t e = 0; e < n; ++e) total += static_cast<double>(p[e]);
    }
    for (int64_t e = 0; e < n; ++e) {
      const double share = static_cast<double>(p[e]) / total;
      sums.probability[static_cast<size_t>(e)] += share;
      if (share > 0) sums.entropy -= share * std::log(share);
    }
  }
}

double load_balance(const RouterShape& shape, std::span<const int64_t> load, std::span<const double> probability,
                    int64_t rows) {
  if (rows == 0) return 0;
  double sum = 0;
  for (size_t e = 0; e < load.size(); ++e) sum += static_cast<double>(load[e]) * probability[e];
  return static_cast<double>(shape.experts) * sum / static_cast<double>(rows * shape.top_k) / static_cast<double>(rows);
}

double max_violation(std::span<const int64_t> load) {
  int64_t most = 0, total = 0;
  for (const int64_t n : load) {
    most = std::max(most, n);
    total += n;
  }
  if (total == 0) return 0;
  return static_cast<double>(most) * static_cast<double>(load.size()) / static_cast<double>(total) - 1;
}

int64_t idle_experts(std::span<const int64_t> load) { return std::count(load.begin(), load.end(), 0); }

void router_backward(const RouterShape& shape, ConstRows logits, const int32_t* expert, const float* d_gate,
                     const float* balance, float z, Rows d_logits) {
  const int64_t n = shape.experts, slots = shape.slots();
  const bool sigmoid_scores = shape.score == RouterScore::kSigmoid;
  for (int64_t r = 0; r < logits.rows; ++r) {
    const float* l = logits.row(r);
    float* out = d_logits.row(r);
    const int32_t* chosen = expert + r * slots;
    const float* d = d_gate + r * slots;
    // First the gradient of P: that of balance, and that of gates where these are P.
    if (balance != nullptr) {
      std::copy_n(balance, n, out);
    } else {
      std::fill_n(out, n, 0.0f);
    }
    if (gates_of_all(shape)) {
      for (int64_t s = 0; s < slots; ++s) {
        if (chosen[s] != kNoExpert) out[chosen[s]] += shape.scaling * d[s];
      }
    }
    const double maximum = maximum_of(l, n), sum = exponential_sum(l, n, maximum);
    const double slope = 2 * static_cast<double>(z) * (maximum + std::log(sum));
    const auto softmax = [&](int64_t e) { return std::exp(static_cast<double>(l[e]) - maximum) / sum; };
    double total = 1, mean = 0;
    if (sigmoid_scores) {
      total = 0;
      for (int64_t e = 0; e < n; ++e) total += sigmoid(l[e]);
    }
    for (int64_t e = 0; e < n; ++e) {
      mean += (sigmoid_scores ? sigmoid(l[e]) / total : softmax(e)) * static_cast<double>(out[e]);
    }
    for (int64_t e = 0; e < n; ++e) {
      const double through =
          (sigmoid_scores ? sigmoid_slope(l[e]) / total : softmax(e)) * (static_cast<double>(out[e]) - mean);
      out[e] = static_cast<float>(slope == 0 ? through : through + slope * softmax(e));
    }
    if (!gates_of_all(shape) && chosen[0] != kNoExpert) add_chosen_gradient(shape, l, chosen, d, out);
  }
}

void gather_rows(ConstRows x, const int32_t* pair, int64_t slots, Rows y) {
  for (int64_t p = 0; p < y.rows; ++p) {
    std::memcpy(y.row(p), x.row(pair[p] / slots), static_cast<size_t>(y.width) * sizeof(float));
  }
}

void combine_rows(ConstRows x, const int32_t* position, const float* gate, int64_t slots, bool accumulate, Rows y) {
  HWY_DYNAMIC_DISPATCH(CombineRows)(x, position, gate, slots, accumulate, y);
}

void add_dots_and_gate_rows(ConstRows d, const float* gate, Rows a, float* dots) {
  HWY_DYNAMIC_DISPATCH(AddDotsAndGateRows)(d, gate, a, dots);
}

void jitter_rows(const RouterJitter& jitter, int64_t row, ConstRows x, Rows y) {
  const double low = 1 - static_cast<double>(jitter.epsilon), spread = 2 * static_cast<double>(jitter.epsilon);
  for (int64_t r = 0; r < x.rows; ++r) {
    uint64_t counter = jitter.first + static_cast<uint64_t>((row + r) * x.width);
    std::array<uint32_t, 4> words = philox(jitter.key, counter >> 2, jitter.stream);
    for (int64_t c = 0; c < x.width; ++c, ++counter) {
      if ((counter & 3) == 0) words = philox(jitter.key, counter >> 2, jitter.stream);
      const double uniform = static_cast<double>(words[counter & 3]) * 0x1p-32;
      y.row(r)[c] = x.row(r)[c] * static_cast<float>(low + spread * uniform);
    }
  }
}

}  // namespace transept
#endif
