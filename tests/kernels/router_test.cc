// Routers against cases worked by hand, and against the reference in double on random logits.
#include "kernels/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "kernels/router_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

ConstRows as_rows(const std::vector<float>& x, int64_t width) {
  return {x.data(), static_cast<int64_t>(x.size()) / width, width, width};
}

struct Routed {
  Routing routing;
  std::vector<float> scores;
};

// Routes all rows; those of one layout entry are one sequence.
Routed route(const RouterShape& shape, const std::vector<float>& logits, const BatchLayout& layout) {
  check_router(shape);
  const ConstRows l = as_rows(logits, shape.experts);
  Routed out{Routing(shape, l.rows), std::vector<float>(logits.size(), kNaN)};
  const Rows scores{out.scores.data(), l.rows, shape.experts, shape.experts};
  router_scores(shape, l, scores);
  int64_t counted = 0;
  for (const SequenceRows& q : layout) {
    int32_t* expert = out.routing.expert.data() + q.first_row * shape.slots();
    float* gate = out.routing.gate.data() + q.first_row * shape.slots();
    counted += q.rows;
    if (shape.choice == RouterChoice::kExperts) {
      std::vector<int32_t> scratch(static_cast<size_t>(q.rows));
      choose_rows(shape, scores.slice(q.first_row, q.rows), expert, gate, scratch.data());
    } else {
      choose_experts(shape, l.slice(q.first_row, q.rows), scores.slice(q.first_row, q.rows), expert, gate);
    }
  }
  group_by_expert(router_capacity(shape, counted), out.routing);
  return out;
}

Routing route(const RouterShape& shape, const std::vector<float>& logits) {
  return route(shape, logits, {{0, static_cast<int64_t>(logits.size()) / shape.experts, 0}}).routing;
}

void expect_gates(const Routing& routing, const std::vector<double>& expected) {
  EXPECT_TRUE(close(routing.gate, expected, tolerance::kFloat));
}

using Experts = std::vector<int32_t>;

const std::vector<float> kFalling{2, 1, 0, -1};  // sigmoids 0.880797 0.731059 0.5 0.268941

TEST(Router, SoftmaxThenTopK) {
  RouterShape shape{.experts = 4, .top_k = 2};
  expect_gates(route(shape, kFalling), {0.64391426, 0.23688282});
  shape.normalize = true;
  expect_gates(route(shape, kFalling), {0.73105858, 0.26894142});
  shape.scaling = 2.5f;
  expect_gates(route(shape, kFalling), {1.82764645, 0.67235355});
  EXPECT_EQ(route(shape, kFalling).expert, (Experts{0, 1}));
}

TEST(Router, SwitchTakesOneExpertWithItsProbability) {
  const Routing routing = route({.experts = 4, .top_k = 1}, {0, 1, 2, -1, 1, 0, -1, 2});
  EXPECT_EQ(routing.expert, (Experts{2, 3}));
  expect_gates(routing, {0.64391426, 0.64391426});
}

TEST(Router, TopKThenSoftmax) {
  const RouterShape shape{.experts = 4, .top_k = 2, .score = RouterScore::kSoftmaxOfChosen};
  const Routing routing = route(shape, {-1, 0, 1, 2});
  EXPECT_EQ(routing.expert, (Experts{3, 2}));
  expect_gates(routing, {0.73105858, 0.26894142});
}

// Bug B13: the bias selects and does nothing else; normalization and scaling are separate, once each.
TEST(Router, SigmoidWithGroupsAndBias) {
  RouterShape shape{.experts = 4,
                    .top_k = 2,
                    .score = RouterScore::kSigmoid,
                    .normalize = true,
                    .scaling = 2.5f,
                    .groups = 2,
                    .groups_chosen = 1,
                    .group_score = GroupScore::kTopTwo};
  Routing routing = route(shape, kFalling);
  EXPECT_EQ(routing.expert, (Experts{0, 1}));
  expect_gates(routing, {1.36612276, 1.13387724});
  const float bias[] = {-1, 0, 0.5f, 0.6f};
  shape.bias = bias;
  routing = route(shape, kFalling);
  EXPECT_EQ(routing.expert, (Experts{2, 3}));
  expect_gates(routing, {1.62561148, 0.87438852});
  shape.bias = nullptr;
  shape.normalize = false;
  expect_gates(route(shape, kFalling), {2.20199269, 1.82764645});
}

// The best expert is in group 0, the best two together are in group 1.
TEST(Router, GroupsByTheirBestOrTheirTwoBest) {
  RouterShape shape{.experts = 6, .top_k = 2, .score = RouterScore::kSigmoid, .groups = 2, .groups_chosen = 1};
  const std::vector<float> logits{3, -3, -3, 1, 2, -3};
  EXPECT_EQ(route(shape, logits).expert, (Experts{0, 1}));
  shape.group_score = GroupScore::kTopTwo;
  EXPECT_EQ(route(shape, logits).expert, (Experts{4, 3}));
  shape.groups_chosen = 2;
  EXPECT_EQ(route(shape, logits).expert, (Experts{0, 4}));
  // Groups of one expert.
  shape = {.experts = 3,
           .top_k = 1,
           .score = RouterScore::kSigmoid,
           .groups = 3,
           .groups_chosen = 1,
           .group_score = GroupScore::kTopTwo};
  EXPECT_EQ(route(shape, {0, 2, 1}).expert, (Experts{1}));
}

// Where all biased scores of the chosen groups are negative, zeros in place of the masked ones would win.
TEST(Router, NegativeBiasedScoresDoNotLetMaskedGroupsIn) {
  const float bias[] = {-5, -4, -3, -2, -9, -9};
  const RouterShape shape{.experts = 6,
                          .top_k = 2,
                          .score = RouterScore::kSigmoid,
                          .groups = 3,
                          .groups_chosen = 1,
                          .group_score = GroupScore::kTopTwo,
                          .bias = bias};
  const Routing routing = route(shape, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(routing.expert, (Experts{3, 2}));
  expect_gates(routing, {0.5, 0.5});
}

TEST(Router, TiesGoToTheLowerExpert) {
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSoftmaxOfChosen, RouterScore::kSigmoid}) {
    EXPECT_EQ(route({.experts = 5, .top_k = 3, .score = score}, {1, 1, 1, 1, 1}).expert, (Experts{0, 1, 2}));
    EXPECT_EQ(route({.experts = 4, .top_k = 2, .score = score}, {-0.0f, 0.0f, -0.0f, 0.0f}).expert, (Experts{0, 1}));
    EXPECT_EQ(route({.experts = 4, .top_k = 3, .score = score}, {0, 7, 0, 7}).expert, (Experts{1, 3, 0}));
  }
  const RouterShape grouped{.experts = 4, .top_k = 2, .score = RouterScore::kSigmoid, .groups = 2, .groups_chosen = 1};
  EXPECT_EQ(route(grouped, {1, 1, 1, 1}).expert, (Experts{0, 1}));
}

TEST(Router, EveryExpertAndOneExpert) {
  Routing routing = route({.experts = 3, .top_k = 3}, {0, 2, 1});
  EXPECT_EQ(routing.expert, (Experts{1, 2, 0}));
  EXPECT_NEAR(static_cast<double>(routing.gate[0] + routing.gate[1] + routing.gate[2]), 1, tolerance::kFloat);
  routing = route({.experts = 1, .top_k = 1}, {-3, 4});
  EXPECT_EQ(routing.expert, (Experts{0, 0}));
  EXPECT_EQ(routing.gate, (std::vector<float>{1, 1}));
}

TEST(Router, HugeLogitsDoNotOverflow) {
  expect_gates(route({.experts = 3, .top_k = 2}, {1000, 1001, -1000}), {0.73105858, 0.26894142});
  expect_gates(route({.experts = 2, .top_k = 2, .score = RouterScore::kSigmoid}, {1000, -1000}), {1, 0});
  // The chosen have no probability left beside the best, which the bias keeps out.
  const float bias[] = {-9, 0, 0};
  const RouterShape shape{.experts = 3, .top_k = 2, .score = RouterScore::kSoftmax, .normalize = true, .bias = bias};
  expect_gates(route(shape, {900, 1, 0}), {0.73105858, 0.26894142});
}

TEST(Router, NaNLogitsGoSomewhere) {
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSoftmaxOfChosen, RouterScore::kSigmoid}) {
    for (const int64_t groups : {1, 2}) {
      RouterShape shape{.experts = 4, .top_k = 2, .score = score, .groups = groups, .groups_chosen = 1};
      shape.group_score = GroupScore::kTopTwo;
      for (const std::vector<float>& logits :
           {std::vector<float>{kNaN, kNaN, kNaN, kNaN}, {0, kNaN, 1, 2}, {kNaN, 0, 1, 2}, {0, 1, 2, kNaN}}) {
        const Routing routing = route(shape, logits);
        for (const int32_t e : routing.expert) EXPECT_TRUE(e >= 0 && e < 4);
        EXPECT_NE(routing.expert[0], routing.expert[1]);
        EXPECT_EQ(routing.places(), 2);
      }
    }
  }
  const RouterShape choice{.experts = 2, .top_k = 1, .choice = RouterChoice::kExperts};
  const Routing routing = route(choice, {kNaN, kNaN, 0, 1, 1, 0, kNaN, 1});
  EXPECT_EQ(routing.places(), 4);
}

TEST(Router, PairsAreSortedByExpert) {
  // Rows choose (2, 0), (0, 2), (2, 3); nobody chooses 1.
  const Routing routing =
      route({.experts = 4, .top_k = 2, .score = RouterScore::kSoftmaxOfChosen}, {1, 0, 2, 0, 2, 0, 1, 0, 0, -1, 2, 1});
  EXPECT_EQ(routing.expert, (Experts{2, 0, 0, 2, 2, 3}));
  EXPECT_EQ(routing.offsets, (std::vector<int64_t>{0, 2, 2, 5, 6}));
  EXPECT_EQ(routing.pair, (Experts{1, 2, 0, 3, 4, 5}));
  EXPECT_EQ(routing.position, (Experts{2, 0, 1, 3, 4, 5}));
  EXPECT_EQ(routing.chosen, 6);
  EXPECT_EQ(routing.dropped, 0);
}

// Four rows, two experts, two choices a row: capacity 0.75 * 8 / 2 = 3. Expert 0 has first choices of rows 1, 2, 3 and
// the second of row 0, which goes although the row is earlier; expert 1 has the first of row 0 and the seconds of 1 and
// 2, and loses that of row 3.
TEST(Router, CapacityKeepsFirstChoicesThenEarlierRows) {
  const RouterShape shape{.experts = 2, .top_k = 2, .capacity_factor = 0.75f};
  const Routing routing = route(shape, {0, 1, 1, 0, 1, 0, 1, 0});
  EXPECT_EQ(router_capacity(shape, 4), 3);
  EXPECT_EQ(routing.position, (Experts{3, -1, 0, 4, 1, 5, 2, -1}));
  EXPECT_EQ(routing.dropped, 2);
  EXPECT_EQ(routing.chosen, 8);
  EXPECT_EQ(routing.gate[1], 0);
  EXPECT_EQ(routing.gate[7], 0);
  EXPECT_GT(routing.gate[6], 0);
}

TEST(Router, CapacityRoundsUp) {
  EXPECT_EQ(router_capacity({.experts = 4, .top_k = 1, .capacity_factor = 1}, 5), 2);
  EXPECT_EQ(router_capacity({.experts = 4, .top_k = 1, .capacity_factor = 1.25f}, 16), 5);
  EXPECT_EQ(router_capacity({.experts = 4, .top_k = 1}, 16), -1);
}

// Two sequences of three rows, two experts, each of which takes ceil(3 / 2) = 2 rows of each sequence.
TEST(Router, ExpertsChooseRowsOfEachSequence) {
  const RouterShape shape{.experts = 2, .top_k = 1, .choice = RouterChoice::kExperts};
  const Routing routing = route(shape, {9, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0}, equal_sequences(2, 3)).routing;
  EXPECT_EQ(routing.expert, (Experts{0, -1, -1, 1, 0, 1, 0, 1, 0, 1, -1, -1}));
  EXPECT_EQ(routing.offsets, (std::vector<int64_t>{0, 4, 8}));
  EXPECT_NEAR(static_cast<double>(routing.gate[0]), 1 / (1 + std::exp(-9.0)), tolerance::kFloat);
  EXPECT_NEAR(static_cast<double>(routing.gate[3]), 1 / (1 + std::exp(1.0)), tolerance::kFloat);
  EXPECT_EQ(routing.gate[2], 0);
}

TEST(Router, PaddingChoosesNothing) {
  const Routing routing = route({.experts = 2, .top_k = 1}, {1, 0, 1, 0, 0, 1}, {{1, 1, 0}}).routing;
  EXPECT_EQ(routing.expert, (Experts{-1, 0, -1}));
  EXPECT_EQ(routing.pair, (Experts{1}));
  EXPECT_EQ(routing.chosen, 1);
}

TEST(Router, LoadsSpreadOrNot) {
  EXPECT_EQ(max_violation(std::vector<int64_t>{3, 3, 3}), 0);
  EXPECT_EQ(max_violation(std::vector<int64_t>{0, 0, 8, 0}), 3);
  EXPECT_EQ(max_violation(std::vector<int64_t>{0, 0}), 0);
  EXPECT_EQ(idle_experts(std::vector<int64_t>{0, 5, 0, 1}), 2);
}

RouterSums sums_of(const RouterShape& shape, const std::vector<float>& logits, const std::vector<float>& scores) {
  RouterSums sums{std::vector<double>(static_cast<size_t>(shape.experts))};
  add_router_sums(shape, as_rows(logits, shape.experts), as_rows(scores, shape.experts), sums);
  return sums;
}

// Bug B14: two layers of three tokens (and pads, which are not among the rows), 4 experts, top-2. transformers counts
// each choice whole, so its mean of the layers' losses is top_k times ours.
TEST(Router, LoadBalanceOfHandWorkedLayers) {
  const RouterShape shape{.experts = 4, .top_k = 2, .normalize = true};
  double sum = 0;
  for (const std::vector<float>& logits :
       {std::vector<float>{2, 1, 0, -1, 0, 1, 2, -1, 1, 0, -1, 2}, {0, 3, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0}}) {
    const Routed routed = route(shape, logits, {{0, 3, 0}});
    std::vector<int64_t> load(4);
    count_choices(routed.routing.expert.data(), 6, load.data());
    sum += load_balance(shape, load, sums_of(shape, logits, routed.scores).probability, 3);
  }
  EXPECT_NEAR(sum / 2 * 2, 2.8331, 5e-5);  // four decimals are given
}

struct Variant {
  std::string name;
  RouterShape shape;
};

std::vector<Variant> every_variant() {
  static const std::vector<float> bias = random_floats(12, 77, 0.3f);
  std::vector<Variant> variants;
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSoftmaxOfChosen, RouterScore::kSigmoid}) {
    for (const bool normalize : {false, true}) {
      for (const int64_t groups : {1, 3}) {
        for (const bool biased : {false, true}) {
          RouterShape s{.experts = 12, .top_k = 3, .score = score, .normalize = normalize, .scaling = 1.5f};
          s.groups = groups;
          s.groups_chosen = groups == 1 ? 1 : 2;
          s.group_score = biased ? GroupScore::kTopTwo : GroupScore::kMax;
          s.bias = biased ? bias.data() : nullptr;
          s.capacity_factor = biased && normalize ? 1.0f : 0.0f;
          variants.push_back({"score " + std::to_string(static_cast<int>(score)) + (normalize ? " normalized" : "") +
                                  " groups " + std::to_string(groups) + (biased ? " biased" : ""),
                              s});
        }
      }
    }
  }
  variants.push_back({"expert choice", {.experts = 12, .top_k = 3, .scaling = 0.7f, .choice = RouterChoice::kExperts}});
  return variants;
}

// Rows 7 and 8 are padding.
const BatchLayout kLayout{{0, 7, 0}, {9, 0, 0}, {9, 20, 0}};
constexpr int64_t kRows = 29, kExperts = 12;

TEST(Router, ChoosesAsTheReferenceDoes) {
  for (const Variant& v : every_variant()) {
    SCOPED_TRACE(v.name);
    const std::vector<float> logits = random_floats(kRows * kExperts, 5);
    const Routing routing = route(v.shape, logits, kLayout).routing;
    const ref::Choices expected = ref::route(v.shape, as_doubles(logits), kLayout);
    EXPECT_EQ(std::vector<int64_t>(routing.expert.begin(), routing.expert.end()), expected.expert);
    EXPECT_TRUE(close(routing.gate, expected.gate, tolerance::kFloat));
    std::vector<bool> computed;
    for (const int32_t p : routing.position) computed.push_back(p >= 0);
    EXPECT_EQ(computed, expected.computed);
    EXPECT_EQ(routing.dropped > 0, v.shape.capacity_factor > 0);
    for (size_t e = 0; e + 1 < routing.offsets.size(); ++e) {
      int32_t last = -1;
      for (int64_t i = routing.offsets[e]; i < routing.offsets[e + 1]; ++i) {
        const int32_t pair = routing.pair[static_cast<size_t>(i)];
        EXPECT_GT(pair, last);
        EXPECT_EQ(routing.expert[static_cast<size_t>(pair)], static_cast<int32_t>(e));
        EXPECT_EQ(routing.position[static_cast<size_t>(pair)], static_cast<int32_t>(i));
        last = pair;
      }
    }
  }
}

TEST(Router, ReferenceGradientsMatchCentralDifferences) {
  for (const Variant& v : every_variant()) {
    SCOPED_TRACE(v.name);
    const std::vector<double> logits = as_doubles(random_floats(kRows * kExperts, 5));
    const ref::Choices choices = ref::route(v.shape, logits, kLayout);
    const std::vector<double> d_gate = as_doubles(random_floats(static_cast<int64_t>(choices.gate.size()), 6));
    const auto gates = [&](const std::vector<double>& l) {
      const ref::Choices c = ref::route(v.shape, l, kLayout);
      return std::inner_product(c.gate.begin(), c.gate.end(), d_gate.begin(), 0.0);
    };
    EXPECT_TRUE(
        gradient_matches(gates, logits, ref::gate_backward(v.shape, logits, choices, d_gate), tolerance::kGradcheck));
    // The load that experts choose is even, and the loss then constant.
    for (const bool each : {false, true}) {
      if (v.shape.choice == RouterChoice::kExperts) break;
      const auto balance = [&](const std::vector<double>& l) {
        return ref::balance_loss(v.shape, l, choices, kLayout, each).value;
      };
      EXPECT_TRUE(gradient_matches(balance, logits, ref::balance_loss(v.shape, logits, choices, kLayout, each).d_logits,
                                   tolerance::kGradcheck));
    }
    const auto z = [&](const std::vector<double>& l) { return ref::z_loss(v.shape, l, kLayout).value; };
    EXPECT_TRUE(gradient_matches(z, logits, ref::z_loss(v.shape, logits, kLayout).d_logits, tolerance::kGradcheck));
  }
}

TEST(Router, GradientsEqualTheReference) {
  const BatchLayout whole{{0, kRows, 0}};
  for (const Variant& v : every_variant()) {
    for (const bool losses : {false, true}) {
      SCOPED_TRACE(v.name + (losses ? " with losses" : ""));
      const std::vector<float> logits = random_floats(kRows * kExperts, 5);
      const std::vector<double> exact = as_doubles(logits);
      const Routed routed = route(v.shape, logits, whole);
      const ref::Choices choices = ref::route(v.shape, exact, whole);
      std::vector<float> d_gate = random_floats(static_cast<int64_t>(choices.gate.size()), 6);
      for (size_t i = 0; i < d_gate.size(); ++i) {
        if (!choices.computed[i]) d_gate[i] = 0;
      }
      std::vector<double> expected = ref::gate_backward(v.shape, exact, choices, as_doubles(d_gate));
      std::vector<float> slopes(static_cast<size_t>(kExperts));
      const double alpha = 3, beta = 2;
      if (losses) {
        std::vector<int64_t> load(slopes.size());
        count_choices(routed.routing.expert.data(), static_cast<int64_t>(choices.gate.size()), load.data());
        for (size_t e = 0; e < load.size(); ++e) {
          slopes[e] = static_cast<float>(alpha * kExperts * static_cast<double>(load[e]) / (kRows * 3.0) / kRows);
        }
        const std::vector<double> balance = ref::balance_loss(v.shape, exact, choices, whole, false).d_logits,
                                  z = ref::z_loss(v.shape, exact, whole).d_logits;
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += alpha * balance[i] + beta * z[i];
      }
      GuardedRows d_logits({kRows, kExperts, 3, 1});
      router_backward(v.shape, as_rows(logits, kExperts), routed.routing.expert.data(), d_gate.data(),
                      losses ? slopes.data() : nullptr, losses ? static_cast<float>(beta / kRows) : 0.f,
                      d_logits.view());
      EXPECT_TRUE(close(d_logits.values(), expected, tolerance::kFloat));
      EXPECT_TRUE(d_logits.guard_intact());
    }
  }
}

TEST(Router, SumsEqualThePlainComputation) {
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSigmoid}) {
    const RouterShape shape{.experts = kExperts, .top_k = 3, .score = score};
    const std::vector<float> logits = random_floats(kRows * kExperts, 8, 2);
    const Routed routed = route(shape, logits, {{0, kRows, 0}});
    const std::vector<double> p = ref::probabilities(shape, as_doubles(logits));
    std::vector<double> probability(static_cast<size_t>(kExperts));
    double entropy = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      probability[i % static_cast<size_t>(kExperts)] += p[i];
      entropy -= p[i] * std::log(p[i]);
    }
    const RouterSums sums = sums_of(shape, logits, routed.scores);
    EXPECT_TRUE(close(sums.probability, probability, tolerance::kFloat));
    EXPECT_NEAR(sums.entropy, entropy, tolerance::kFloat * entropy);
    const double z = ref::z_loss(shape, as_doubles(logits), {{0, kRows, 0}}).value * kRows;
    EXPECT_NEAR(sums.squared_lse, z, tolerance::kFloat * z);
    std::vector<int64_t> load(static_cast<size_t>(kExperts));
    count_choices(routed.routing.expert.data(), kRows * 3, load.data());
    const ref::Choices choices = ref::route(shape, as_doubles(logits), {{0, kRows, 0}});
    const double balance = ref::balance_loss(shape, as_doubles(logits), choices, {{0, kRows, 0}}, false).value;
    EXPECT_NEAR(load_balance(shape, load, sums.probability, kRows), balance, tolerance::kFloat * balance);
  }
}

TEST(Router, RowsMoveByExpertAndBack) {
  const Experts pair{4, 0, 3, 1}, position{1, 3, -1, 2, 0, -1};  // two slots a row
  const std::vector<float> gate{0.5f, 2, 9, -1, 3, 9};
  for_each_instruction_set([&] {
    for (const RowsShape& s : kRowsShapes) {
      RowsShape three = s, four = s;
      three.rows = 3;
      four.rows = 4;
      const std::vector<float> x = random_floats(3 * s.width, 1), by_expert = random_floats(4 * s.width, 2);
      const size_t width = static_cast<size_t>(s.width);
      GuardedRows from(three, x), to(four);
      gather_rows(from.view(), pair.data(), 2, to.view());
      std::vector<float> gathered;
      for (const size_t row : {2, 0, 1, 0}) {
        gathered.insert(gathered.end(), x.begin() + static_cast<ptrdiff_t>(row * width),
                        x.begin() + static_cast<ptrdiff_t>((row + 1) * width));
      }
      EXPECT_EQ(to.values(), gathered);
      EXPECT_TRUE(to.guard_intact());
      for (const bool gated : {false, true}) {
        for (const bool accumulate : {false, true}) {
          GuardedRows places(four, by_expert), y(three);
          if (accumulate) y.set(x);
          std::vector<double> expected(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            if (accumulate) expected[i] = static_cast<double>(x[i]);
            for (size_t k = 0; k < 2; ++k) {
              const size_t at = i / width * 2 + k;
              if (position[at] < 0) continue;
              expected[i] += (gated ? static_cast<double>(gate[at]) : 1) *
                             static_cast<double>(by_expert[static_cast<size_t>(position[at]) * width + i % width]);
            }
          }
          combine_rows(places.view(), position.data(), gated ? gate.data() : nullptr, 2, accumulate, y.view());
          EXPECT_TRUE(close(y.values(), expected, tolerance::kFloat)) << ::testing::PrintToString(s);
          EXPECT_TRUE(y.guard_intact());
        }
      }
      GuardedRows d(three, random_floats(3 * s.width, 3)), a(three, x);
      std::vector<float> dots{1, 2, 3};
      std::vector<double> sums{1, 2, 3}, scaled;
      for (size_t i = 0; i < x.size(); ++i) {
        sums[i / width] += static_cast<double>(d.values()[i]) * static_cast<double>(x[i]);
        scaled.push_back(static_cast<double>(gate[i / width]) * static_cast<double>(x[i]));
      }
      add_dots_and_gate_rows(d.view(), gate.data(), a.view(), dots.data());
      EXPECT_TRUE(close(dots, sums, tolerance::kKernel)) << ::testing::PrintToString(s);
      EXPECT_TRUE(close(a.values(), scaled, tolerance::kFloat));
      EXPECT_TRUE(a.guard_intact());
    }
  });
}

TEST(Router, JitterIsUniformAroundOneAndGoesByCounter) {
  constexpr int64_t kWidth = 1001, kCount = 20;
  const std::vector<float> ones(static_cast<size_t>(kWidth * kCount), 1.0f);
  std::vector<float> noise(ones.size());
  const RouterJitter jitter{.key = 3, .stream = 5, .first = 6, .epsilon = 0.25f};
  const Rows all{noise.data(), kCount, kWidth, kWidth};
  jitter_rows(jitter, 0, as_rows(ones, kWidth), all);
  double mean = 0, square = 0;
  for (const float v : noise) {
    EXPECT_TRUE(v >= 0.75f && v <= 1.25f);
    mean += static_cast<double>(v) / static_cast<double>(noise.size());
    square += (static_cast<double>(v) - 1) * (static_cast<double>(v) - 1) / static_cast<double>(noise.size());
  }
  // Five standard errors: 0.25 / sqrt(3) / sqrt(20,020), and 0.3 of the variance over the same root.
  EXPECT_NEAR(mean, 1, 5 * 0.0011);
  EXPECT_NEAR(square, 0.0625 / 3, 5 * 0.00014);
  std::vector<float> later(static_cast<size_t>(kWidth));
  jitter_rows(jitter, 7, {ones.data(), 1, kWidth, kWidth}, {later.data(), 1, kWidth, kWidth});
  EXPECT_TRUE(std::equal(later.begin(), later.end(), all.row(7)));
}

}  // namespace
}  // namespace transept
