// Routers of mixture-of-experts layers: scores, choice, gates, the order by expert, statistics, and gradients.
// Switch (one expert a token, load-balancing loss, capacity, jitter): arXiv:2101.03961 section 2.
// GShard (capacity and dropping, first choices first): arXiv:2006.16668 section 2.2.
// Mixtral (softmax among the chosen): arXiv:2401.04088 section 2.1.
// DeepSeekMoE (fine-grained experts): arXiv:2401.06066 section 3; groups of experts: DeepSeek-V2, arXiv:2405.04434
// section 2.2.2; sigmoid scores, selection bias, balance loss of a sequence: DeepSeek-V3, arXiv:2412.19437 section
// 2.1.2.
// z-loss: ST-MoE, arXiv:2202.08906 equation 5. Expert choice: arXiv:2202.09368 section 3.2.
// One call runs on one thread, and none allocates. Exponentials are taken in double: beside the experts they cost
// nothing, and every instruction set then chooses the same experts from the same logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/rows.h"

namespace transept {

// What the gates are. kSoftmax: the softmax over all experts (Switch, DeepSeek-V2, Qwen). kSoftmaxOfChosen: experts are
// chosen by logit, and the softmax runs over the chosen alone (Mixtral). kSigmoid: the sigmoid of each logit
// (DeepSeek-V3).
enum class RouterScore { kSoftmax, kSoftmaxOfChosen, kSigmoid };

// The score of a group of experts: its best expert's, or the sum of its two best (of one, where a group holds one).
enum class GroupScore { kMax, kTopTwo };

// Tokens choose their top_k experts; or each expert chooses its best ceil(rows * top_k / experts) rows of each sequence
// (which lets a token see later ones: not for causal models).
enum class RouterChoice { kTokens, kExperts };

inline constexpr int32_t kNoExpert = -1;

struct RouterShape {
  int64_t experts = 0, top_k = 0;
  RouterScore score = RouterScore::kSoftmax;
  // Chosen gates are divided by their sum (plus 1e-20 for sigmoids). Those of kSoftmaxOfChosen add up to 1 anyway.
  bool normalize = false;
  float scaling = 1;  // multiplies the gates, last
  // Experts come in `groups` equal runs, and only those of the groups_chosen best groups can be chosen; these must hold
  // top_k experts.
  int64_t groups = 1, groups_chosen = 1;
  GroupScore group_score = GroupScore::kMax;
  const float* bias = nullptr;  // [experts], added to what is compared (scores, or logits of kSoftmaxOfChosen), not to
                                // gates
  RouterChoice choice = RouterChoice::kTokens;  // kExperts: of kSoftmax, without normalize, groups, bias and capacity
  // 0: every choice is computed. Else an expert takes at most ceil(capacity_factor * rows * top_k / experts) choices.
  float capacity_factor = 0;

  // Places for choices in a row.
  int64_t slots() const { return choice == RouterChoice::kExperts ? experts : top_k; }
};

// That a shape keeps the rules above; a CHECK, since specs are validated before.
void check_router(const RouterShape& shape);

// Where rows go. A pair is (row, slot), numbered row * slots + slot.
struct Routing {
  int64_t rows = 0, slots = 0;
  std::vector<int32_t> expert;   // [rows, slots], best choice first; kNoExpert: no choice (a row of padding, a row that
                                 // an expert did not choose)
  std::vector<float> gate;       // [rows, slots]; 0 for a dropped pair or none
  std::vector<int64_t> offsets;  // [experts + 1]: expert e computes places [offsets[e], offsets[e + 1])
  std::vector<int32_t> pair;     // of each place, rows in order within an expert
  std::vector<int32_t> position;  // [rows, slots]: the place of a pair, -1 for one that is not computed
  int64_t chosen = 0;             // pairs with an expert
  int64_t dropped = 0;            // of these, not computed for want of capacity

  int64_t places() const { return static_cast<int64_t>(pair.size()); }

  // All pairs without an expert.
  Routing(const RouterShape& shape, int64_t rows);
};

// scores [rows, experts]: the softmax of each row, or its sigmoids.
void router_scores(const RouterShape& shape, ConstRows logits, Rows scores);

// Tokens choose: fills expert and gate, [rows, top_k] each. Equal scores go to the lower expert; a NaN counts as the
// lowest score.
void choose_experts(const RouterShape& shape, ConstRows logits, ConstRows scores, int32_t* expert, float* gate);

// Experts choose among the rows of one sequence: fills expert and gate, [rows, experts] each, expert e in slot e. Equal
// scores go to the earlier row. `scratch` [rows].
void choose_rows(const RouterShape& shape, ConstRows scores, int32_t* expert, float* gate, int32_t* scratch);

// Choices that an expert computes of `rows` rows; -1: all.
int64_t router_capacity(const RouterShape& shape, int64_t rows);

// From the filled expert and gate, everything else of a routing, by a counting sort. Where an expert has more than
// `capacity` choices (-1: no bound), first choices stay before second ones, and of equal rank the earlier rows.
void group_by_expert(int64_t capacity, Routing& routing);

// Adds to `load` [experts] the choices of `pairs` pairs, dropped ones too.
void count_choices(const int32_t* expert, int64_t pairs, int64_t* load);

// Sums over rows, in double. P is the softmax of a row, or its sigmoids divided by their sum.
struct RouterSums {
  std::vector<double> probability;  // of P [experts]
  double entropy = 0;               // of -sum_i P_i log P_i, nats
  double squared_lse = 0;           // of log(sum_i exp(logit_i))^2
};
void add_router_sums(const RouterShape& shape, ConstRows logits, ConstRows scores, RouterSums& sums);

// experts * sum_i f_i P_i with f_i = load_i / (rows * top_k) and P_i = probability_i / rows: 1 when even. 0 of no rows.
double load_balance(const RouterShape& shape, std::span<const int64_t> load, std::span<const double> probability,
                    int64_t rows);

// max_i load_i / mean load - 1 (arXiv:2408.15664 equation 4); 0 when nothing is loaded.
double max_violation(std::span<const int64_t> load);
int64_t idle_experts(std::span<const int64_t> load);

// d_logits [rows, experts] from d_gate [rows, slots] (only chosen pairs are read), and of losses whose gradient with
// respect to P is the same for all these rows: `balance` [experts] may be null; z is the factor of d(lse^2).
void router_backward(const RouterShape& shape, ConstRows logits, const int32_t* expert, const float* d_gate,
                     const float* balance, float z, Rows d_logits);

// The moves of rows between their order and that by expert.

// y[p] = x[pair[p] / slots].
void gather_rows(ConstRows x, const int32_t* pair, int64_t slots, Rows y);

// y[r] = sum over slots, in order, of gate[r, s] * x[position[r, s]], where there is a place; gate may be null (all 1).
// With `accumulate`, added to y.
void combine_rows(ConstRows x, const int32_t* position, const float* gate, int64_t slots, bool accumulate, Rows y);

// dots[r] += sum_c d[r, c] * a[r, c], then a[r] *= gate[r].
void add_dots_and_gate_rows(ConstRows d, const float* gate, Rows a, float* dots);

// y[r, c] = x[r, c] * (1 - epsilon + 2 epsilon u), u uniform in [0, 1): a pure function of key, stream and the counter
// first + (row + r) * x.width + c.
struct RouterJitter {
  uint64_t key = 0, stream = 0, first = 0;
  float epsilon = 0;
};
void jitter_rows(const RouterJitter& jitter, int64_t row, ConstRows x, Rows y);

}  // namespace transept
