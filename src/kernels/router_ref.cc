#include "kernels/router_ref.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace transept::ref {
namespace {

using Row = std::vector<double>;

Row row_of(std::span<const double> logits, size_t row, size_t width) {
  return {logits.begin() + static_cast<ptrdiff_t>(row * width),
          logits.begin() + static_cast<ptrdiff_t>((row + 1) * width)};
}

double log_sum_exp(const Row& x) {
  const double maximum = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double v : x) sum += std::exp(v - maximum);
  return maximum + std::log(sum);
}

Row softmax(const Row& x) {
  const double lse = log_sum_exp(x);
  Row y;
  for (const double v : x) y.push_back(std::exp(v - lse));
  return y;
}

Row sigmoid(const Row& x) {
  Row y;
  for (const double v : x) y.push_back(1 / (1 + std::exp(-v)));
  return y;
}

// Indices by falling value; equal values by rising index.
std::vector<size_t> ranked(const Row& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return values[a] > values[b] || (values[a] == values[b] && a < b); });
  return order;
}

// The experts that a token chooses, best first.
std::vector<size_t> top_experts(const RouterShape& s, const Row& logits) {
  Row value = s.score == RouterScore::kSoftmax   ? softmax(logits)
              : s.score == RouterScore::kSigmoid ? sigmoid(logits)
                                                 : logits;
  for (size_t e = 0; e < value.size() && s.bias != nullptr; ++e) value[e] += static_cast<double>(s.bias[e]);
  const size_t groups = static_cast<size_t>(s.groups), size = value.size() / groups;
  Row group_value;
  for (size_t g = 0; g < groups; ++g) {
    Row members = row_of(value, g, size);
    std::sort(members.begin(), members.end(), std::greater<>());
    group_value.push_back(s.group_score == GroupScore::kTopTwo && size > 1 ? members[0] + members[1] : members[0]);
  }
  std::vector<bool> allowed(groups);
  const std::vector<size_t> group_order = ranked(group_value);
  for (size_t i = 0; i < static_cast<size_t>(s.groups_chosen); ++i) allowed[group_order[i]] = true;
  std::vector<size_t> chosen;
  for (const size_t e : ranked(value)) {
    if (allowed[e / size] && chosen.size() < static_cast<size_t>(s.top_k)) chosen.push_back(e);
  }
  return chosen;
}

// The scores that become gates: [experts], and their Jacobian [score, logit].
struct Scores {
  Row value;
  std::vector<Row> slope;
};

Scores softmax_scores(const Row& logits) {
  Scores s{softmax(logits), {}};
  for (size_t i = 0; i < logits.size(); ++i) {
    s.slope.emplace_back(logits.size());
    for (size_t j = 0; j < logits.size(); ++j) s.slope[i][j] = s.value[i] * ((i == j ? 1 : 0) - s.value[j]);
  }
  return s;
}

Scores sigmoid_scores(const Row& logits) {
  Scores s{sigmoid(logits), {}};
  for (size_t i = 0; i < logits.size(); ++i) {
    s.slope.emplace_back(logits.size());
    s.slope[i][i] = s.value[i] * (1 - s.value[i]);
  }
  return s;
}

Scores scores_of(const RouterShape& s, const Row& logits) {
  return s.score == RouterScore::kSigmoid ? sigmoid_scores(logits) : softmax_scores(logits);
}

// Softmax among the chosen equals the softmax over all divided by the sum of the chosen.
bool normalized(const RouterShape& s) { return s.normalize || s.score == RouterScore::kSoftmaxOfChosen; }

double sum_of(const RouterShape& s, const Row& value, const std::vector<size_t>& chosen) {
  double sum = s.score == RouterScore::kSigmoid ? 1e-20 : 0;
  for (const size_t e : chosen) sum += value[e];
  return sum;
}

std::vector<size_t> chosen_of(const Choices& c, size_t row, size_t slots) {
  std::vector<size_t> chosen;
  for (size_t k = 0; k < slots; ++k) {
    if (c.expert[row * slots + k] >= 0) chosen.push_back(static_cast<size_t>(c.expert[row * slots + k]));
  }
  return chosen;
}

}  // namespace

Choices route(const RouterShape& s, std::span<const double> logits, const BatchLayout& layout) {
  const size_t experts = static_cast<size_t>(s.experts), rows = logits.size() / experts,
               slots = static_cast<size_t>(s.slots()), top_k = static_cast<size_t>(s.top_k);
  Choices c{std::vector<int64_t>(rows * slots, -1), std::vector<double>(rows * slots), std::vector<bool>(rows * slots)};
  int64_t counted = 0;
  for (const SequenceRows& q : layout) {
    const size_t first = static_cast<size_t>(q.first_row), count = static_cast<size_t>(q.rows);
    counted += q.rows;
    if (s.choice == RouterChoice::kExperts) {
      const size_t each = (count * top_k + experts - 1) / experts;
      for (size_t e = 0; e < experts; ++e) {
        Row of_expert;
        for (size_t r = first; r < first + count; ++r) of_expert.push_back(softmax(row_of(logits, r, experts))[e]);
        const std::vector<size_t> order = ranked(of_expert);
        for (size_t i = 0; i < each; ++i) {
          const size_t at = (first + order[i]) * slots + e;
          c.expert[at] = static_cast<int64_t>(e);
          c.gate[at] = static_cast<double>(s.scaling) * of_expert[order[i]];
          c.computed[at] = true;
        }
      }
      continue;
    }
    for (size_t r = first; r < first + count; ++r) {
      const Row row = row_of(logits, r, experts), value = scores_of(s, row).value;
      const std::vector<size_t> chosen = top_experts(s, row);
      const double sum = normalized(s) ? sum_of(s, value, chosen) : 1;
      for (size_t k = 0; k < slots; ++k) {
        c.expert[r * slots + k] = static_cast<int64_t>(chosen[k]);
        c.gate[r * slots + k] = static_cast<double>(s.scaling) * value[chosen[k]] / sum;
        c.computed[r * slots + k] = true;
      }
    }
  }
  if (s.capacity_factor > 0) {
    const double capacity = std::ceil(static_cast<double>(s.capacity_factor) * static_cast<double>(counted) *
                                      static_cast<double>(s.top_k) / static_cast<double>(s.experts));
    std::vector<double> taken(experts);
    for (size_t k = 0; k < slots; ++k) {
      for (size_t r = 0; r < rows; ++r) {
        const size_t at = r * slots + k;
        if (c.expert[at] < 0) continue;
        if (taken[static_cast<size_t>(c.expert[at])]++ < capacity) continue;
        c.gate[at] = 0;
        c.computed[at] = false;
      }
    }
  }
  return c;
}

std::vector<double> gate_backward(const RouterShape& s, std::span<const double> logits, const Choices& choices,
                                  std::span<const double> d_gate) {
  const size_t experts = static_cast<size_t>(s.experts), rows = logits.size() / experts,
               slots = static_cast<size_t>(s.slots());
  const double scaling = static_cast<double>(s.scaling);
  std::vector<double> d_logits(logits.size());
  for (size_t r = 0; r < rows; ++r) {
    const Scores scores = scores_of(s, row_of(logits, r, experts));
    const std::vector<size_t> chosen = chosen_of(choices, r, slots);
    const double sum = sum_of(s, scores.value, chosen);
    for (size_t k = 0; k < slots; ++k) {
      const size_t at = r * slots + k;
      if (!choices.computed[at]) continue;
      const size_t i = static_cast<size_t>(choices.expert[at]);
      for (size_t j = 0; j < experts; ++j) {
        double slope = scores.slope[i][j];
        if (normalized(s)) {
          double sum_slope = 0;
          for (const size_t e : chosen) sum_slope += scores.slope[e][j];
          slope = (slope * sum - scores.value[i] * sum_slope) / (sum * sum);
        }
        d_logits[r * experts + j] += scaling * slope * d_gate[at];
      }
    }
  }
  return d_logits;
}

std::vector<double> probabilities(const RouterShape& s, std::span<const double> logits) {
  const size_t experts = static_cast<size_t>(s.experts);
  std::vector<double> p;
  for (size_t r = 0; r < logits.size() / experts; ++r) {
    Row value = scores_of(s, row_of(logits, r, experts)).value;
    const double sum = std::accumulate(value.begin(), value.end(), 0.0);
    for (const double v : value) p.push_back(v / sum);
  }
  return p;
}

Loss balance_loss(const RouterShape& s, std::span<const double> logits, const Choices& choices,
                  const BatchLayout& layout, bool per_sequence) {
  const size_t experts = static_cast<size_t>(s.experts), slots = static_cast<size_t>(s.slots());
  const std::vector<double> p = probabilities(s, logits);
  Loss loss{0, std::vector<double>(logits.size())};
  std::vector<BatchLayout> parts;  // of each, one loss
  if (per_sequence) {
    for (const SequenceRows& q : layout) {
      if (q.rows > 0) parts.push_back({q});
    }
  } else {
    parts.push_back(layout);
  }
  for (const BatchLayout& part : parts) {
    std::vector<size_t> rows;
    for (const SequenceRows& q : part) {
      for (int64_t r = 0; r < q.rows; ++r) rows.push_back(static_cast<size_t>(q.first_row + r));
    }
    if (rows.empty()) continue;
    const double n = static_cast<double>(rows.size()), share = 1 / static_cast<double>(parts.size());
    Row f(experts), mean(experts);
    for (const size_t r : rows) {
      for (const size_t e : chosen_of(choices, r, slots)) f[e] += 1 / (n * static_cast<double>(s.top_k));
      for (size_t e = 0; e < experts; ++e) mean[e] += p[r * experts + e] / n;
    }
    for (size_t e = 0; e < experts; ++e) loss.value += share * static_cast<double>(experts) * f[e] * mean[e];
    for (const size_t r : rows) {
      const Scores scores = scores_of(s, row_of(logits, r, experts));
      const double sum = std::accumulate(scores.value.begin(), scores.value.end(), 0.0);
      for (size_t j = 0; j < experts; ++j) {
        double sum_slope = 0;
        for (size_t i = 0; i < experts; ++i) sum_slope += scores.slope[i][j];
        for (size_t i = 0; i < experts; ++i) {
          const double slope = (scores.slope[i][j] * sum - scores.value[i] * sum_slope) / (sum * sum);
          loss.d_logits[r * experts + j] += share * static_cast<double>(experts) * f[i] / n * slope;
        }
      }
    }
  }
  return loss;
}

Loss z_loss(const RouterShape& s, std::span<const double> logits, const BatchLayout& layout) {
  const size_t experts = static_cast<size_t>(s.experts);
  Loss loss{0, std::vector<double>(logits.size())};
  double n = 0;
  for (const SequenceRows& q : layout) n += static_cast<double>(q.rows);
  for (const SequenceRows& q : layout) {
    for (int64_t r = q.first_row; r < q.first_row + q.rows; ++r) {
      const Row row = row_of(logits, static_cast<size_t>(r), experts), p = softmax(row);
      const double lse = log_sum_exp(row);
      loss.value += lse * lse / n;
      for (size_t e = 0; e < experts; ++e) loss.d_logits[static_cast<size_t>(r) * experts + e] = 2 * lse * p[e] / n;
    }
  }
  return loss;
}

}  // namespace transept::ref
