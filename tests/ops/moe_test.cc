// Mixture-of-experts layers with every router, form and end, against a plain loop over tokens and their experts in
// double.
#include "ops/moe.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "double_ops.h"
#include "kernels/activation_ref.h"
#include "kernels/router_ref.h"
#include "ops/ffn.h"

namespace transept {
namespace {

struct Layer {
  std::string name;
  RouterShape router{.experts = 4, .top_k = 2};
  bool gated = true, biased = false;  // a bias of the selection
  BalanceLosses losses{};
  float jitter = 0;
  EndParts end{};
  int64_t width = 8, hidden = 21, out = 8;
  BatchLayout layout = equal_sequences(2, 4);
  int64_t rows = 8;
  ActivationKind activation = ActivationKind::kSilu;
  bool biases = false;  // of the router and of the experts: parameters 3 to 5

  RouterJitter noise() const { return {.key = 9, .stream = 4, .first = 3, .epsilon = jitter}; }
  int64_t in_width() const { return gated ? 2 * hidden : hidden; }
};

Doubles rows_of(const Doubles& x, int64_t first, int64_t count, int64_t width) {
  return {x.begin() + first * width, x.begin() + (first + count) * width};
}

void add_into(Doubles& to, int64_t at, const Doubles& x, double factor = 1) {
  for (size_t i = 0; i < x.size(); ++i) to[static_cast<size_t>(at) + i] += factor * x[i];
}

// The layer in double, from x [rows, width] and the parameters router, in and down.
struct Plain {
  Layer layer;
  RouterShape router;
  std::vector<float> bias;

  explicit Plain(const Layer& l) : layer(l), router(l.router), bias(random_floats(l.router.experts, 50, 0.3f)) {
    if (l.biased) router.bias = bias.data();
  }
  Plain(const Plain&) = delete;

  Doubles noise() const {
    const std::vector<float> ones(static_cast<size_t>(layer.rows * layer.width), 1);
    std::vector<float> noise(ones.size());
    jitter_rows(layer.noise(), 0, {ones.data(), layer.rows, layer.width, layer.width},
                {noise.data(), layer.rows, layer.width, layer.width});
    return as_doubles(noise);
  }
  Doubles router_input(const Values& v) const {
    Doubles x = v.inputs[0];
    const Doubles factor = noise();
    for (size_t i = 0; i < x.size(); ++i) x[i] *= factor[i];
    return x;
  }
  Doubles logits(const Values& v) const {
    Doubles l = times_transposed(router_input(v), v.params[0], layer.width);
    if (layer.biases) add_to_rows(v.params[3], l);
    return l;
  }
  Doubles expert_in(const Values& v, int64_t e) const {
    return rows_of(v.params[1], e * layer.in_width(), layer.in_width(), layer.width);
  }
  Doubles expert_down(const Values& v, int64_t e) const {
    return rows_of(v.params[2], e * layer.out, layer.out, layer.hidden);
  }
  // What expert e makes of one row before its activation, and of the activated row.
  Doubles first(const Values& v, const Doubles& x, int64_t e) const {
    Doubles z = times_transposed(x, expert_in(v, e), layer.width);
    if (layer.biases) add_to_rows(rows_of(v.params[4], e * layer.in_width(), layer.in_width(), 1), z);
    return z;
  }
  Doubles second(const Values& v, const Doubles& a, int64_t e) const {
    Doubles y = times_transposed(a, expert_down(v, e), layer.hidden);
    if (layer.biases) add_to_rows(rows_of(v.params[5], e * layer.out, layer.out, 1), y);
    return y;
  }
  Doubles activated(const Doubles& z) const {
    if (layer.gated) return ref::gated(layer.activation, z, static_cast<size_t>(layer.hidden));
    Doubles a;
    for (const double x : z) a.push_back(ref::activation(layer.activation, x));
    return a;
  }
  Doubles activated_backward(const Doubles& z, const Doubles& da) const {
    if (layer.gated) return ref::gated_backward(layer.activation, z, da, static_cast<size_t>(layer.hidden));
    Doubles dz;
    for (size_t i = 0; i < z.size(); ++i) dz.push_back(da[i] * ref::activation_slope(layer.activation, z[i]));
    return dz;
  }
  double loss(const Doubles& l) const {
    const ref::Choices choices = ref::route(router, l, layer.layout);
    return static_cast<double>(layer.losses.balance) *
               ref::balance_loss(router, l, choices, layer.layout, layer.losses.per_sequence).value +
           static_cast<double>(layer.losses.z) * ref::z_loss(router, l, layer.layout).value;
  }

  Doubles forward(const Values& v) const {
    const ref::Choices choices = ref::route(router, logits(v), layer.layout);
    const int64_t slots = router.slots();
    Doubles y(static_cast<size_t>(layer.rows * layer.out));
    for (int64_t p = 0; p < layer.rows * slots; ++p) {
      if (!choices.computed[static_cast<size_t>(p)]) continue;
      const int64_t row = p / slots, e = choices.expert[static_cast<size_t>(p)];
      const Doubles z = first(v, rows_of(v.inputs[0], row, 1, layer.width), e);
      add_into(y, row * layer.out, second(v, activated(z), e), choices.gate[static_cast<size_t>(p)]);
    }
    return layer.end.forward(y, layer.out, v);
  }

  // `weight`: what the losses count.
  Values backward(const Values& v, const Doubles& dy, double weight) const {
    Values gradient{{Doubles(v.inputs[0].size())}, {}};
    for (const Doubles& p : v.params) gradient.params.emplace_back(p.size());
    const Doubles g = layer.end.backward(dy, layer.out, gradient), l = logits(v);
    const ref::Choices choices = ref::route(router, l, layer.layout);
    const int64_t slots = router.slots();
    Doubles d_gate(choices.gate.size());
    for (size_t p = 0; p < d_gate.size(); ++p) {
      if (!choices.computed[p]) continue;
      const int64_t row = static_cast<int64_t>(p) / slots, e = choices.expert[p];
      const Doubles x = rows_of(v.inputs[0], row, 1, layer.width), z = first(v, x, e), a = activated(z);
      Doubles d_out = rows_of(g, row, 1, layer.out);
      const Doubles output = second(v, a, e);
      for (size_t i = 0; i < output.size(); ++i) d_gate[p] += d_out[i] * output[i];
      for (double& d : d_out) d *= choices.gate[p];
      add_into(gradient.params[2], e * layer.out * layer.hidden, transposed_times(d_out, a, 1));
      const Doubles dz = activated_backward(z, times(d_out, expert_down(v, e), layer.hidden));
      add_into(gradient.params[1], e * layer.in_width() * layer.width, transposed_times(dz, x, 1));
      if (layer.biases) {
        add_into(gradient.params[4], e * layer.in_width(), dz);
        add_into(gradient.params[5], e * layer.out, d_out);
      }
      add_into(gradient.inputs[0], row * layer.width, times(dz, expert_in(v, e), layer.width));
    }
    Doubles d_logits = ref::gate_backward(router, l, choices, d_gate);
    add_into(d_logits, 0, ref::balance_loss(router, l, choices, layer.layout, layer.losses.per_sequence).d_logits,
             weight * static_cast<double>(layer.losses.balance));
    add_into(d_logits, 0, ref::z_loss(router, l, layer.layout).d_logits, weight * static_cast<double>(layer.losses.z));
    gradient.params[0] = transposed_times(d_logits, router_input(v), layer.rows);
    if (layer.biases) gradient.params[3] = column_sums(d_logits, router.experts);
    Doubles dx = times(d_logits, v.params[0], layer.width);
    const Doubles factor = noise();
    for (size_t i = 0; i < dx.size(); ++i) dx[i] *= factor[i];
    add_into(gradient.inputs[0], 0, dx);
    return gradient;
  }
};

Var run_moe(const OpContext& context, const Layer& layer, const RouterShape& router, const std::vector<Var>& inputs,
            const std::vector<Param>& params, RouterStatistics* statistics = nullptr) {
  const auto bias = [&](size_t i) { return layer.biases ? params[i] : Param(); };
  const MoeParams p{.router = router,
                    .gate = params[0],
                    .gate_bias = bias(3),
                    .activation = layer.activation,
                    .gated = layer.gated,
                    .in = params[1],
                    .in_bias = bias(4),
                    .down = params[2],
                    .down_bias = bias(5),
                    .jitter = layer.noise()};
  return moe(context, inputs[0], p, layer.losses, layer.layout, layer.end.end(layer.out, inputs, params), statistics);
}

// Parameters: router, first projections, second projections, and the biases of each.
OpCase moe_case(const Layer& layer) {
  const auto plain = std::make_shared<Plain>(layer);
  OpCase c;
  c.name = layer.name;
  c.inputs = {{layer.rows, layer.width}};
  if (layer.end.residual) c.inputs.push_back({layer.rows, layer.out});
  const int64_t e = layer.router.experts;
  c.params = {weight_of(e, layer.width), weight_of(e * layer.in_width(), layer.width),
              weight_of(e * layer.out, layer.hidden)};
  if (layer.biases) {
    for (const int64_t width : {e, e * layer.in_width(), e * layer.out}) c.params.push_back({width, 1});
  }
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return run_moe(context, layer, plain->router, inputs, params);
  };
  c.forward = [=](const Values& v) { return plain->forward(v); };
  c.backward = [=](const Values& v, const Doubles& dy) {
    return plain->backward(v, dy, static_cast<double>(layer.losses.weight));
  };
  return c;
}

// The losses are one more element of the result, whose gradient is what they count.
OpCase case_with_losses(const Layer& layer) {
  const auto plain = std::make_shared<Plain>(layer);
  OpCase c = moe_case(layer);
  c.forward = [=](const Values& v) {
    Doubles y = plain->forward(v);
    y.push_back(plain->loss(plain->logits(v)));
    return y;
  };
  c.backward = [=](const Values& v, Doubles dy) {
    const double weight = dy.back();
    dy.pop_back();
    return plain->backward(v, dy, weight);
  };
  return c;
}

std::vector<Layer> every_layer() {
  constexpr BalanceLosses kBatch{.balance = 2, .z = 0.5f, .weight = 0.7f};
  constexpr BalanceLosses kSequences{.balance = 2, .per_sequence = true, .weight = 0.7f};
  const RouterShape deepseek{.experts = 8,
                             .top_k = 3,
                             .score = RouterScore::kSigmoid,
                             .normalize = true,
                             .scaling = 2.5f,
                             .groups = 4,
                             .groups_chosen = 2,
                             .group_score = GroupScore::kTopTwo};
  return {
      {.name = "softmax"},
      {.name = "softmax, not gated", .gated = false, .losses = kBatch},
      {.name = "one expert a token, capacity",
       .router = {.experts = 4, .top_k = 1, .capacity_factor = 0.75f},
       .losses = kBatch,
       .jitter = 0.2f,
       .end = {.residual = true}},
      {.name = "softmax, normalized, capacity",
       .router = {.experts = 4, .top_k = 2, .normalize = true, .capacity_factor = 1},
       .losses = kSequences,
       .end = {.dropout = true, .residual = true}},
      {.name = "softmax of the chosen",
       .router = {.experts = 5, .top_k = 2, .score = RouterScore::kSoftmaxOfChosen},
       .losses = kBatch,
       .out = 13,
       .layout = {{0, 3, 0}, {5, 6, 0}},
       .rows = 12},
      {.name = "sigmoid, groups, bias",
       .router = deepseek,
       .biased = true,
       .losses = {.balance = 2, .per_sequence = true, .z = 0.5f, .weight = 0.7f},
       .end = {.dropout = true}},
      {.name = "sigmoid, not normalized",
       .router = {.experts = 3, .top_k = 2, .score = RouterScore::kSigmoid, .scaling = 0.5f},
       .losses = kBatch},
      {.name = "biases, clamped gates, softmax of the chosen",
       .router = {.experts = 5, .top_k = 2, .score = RouterScore::kSoftmaxOfChosen},
       .losses = kBatch,
       .end = {.dropout = true, .residual = true},
       .activation = ActivationKind::kClampedSilu,
       .biases = true},
      {.name = "biases, not gated, capacity",
       .router = {.experts = 4, .top_k = 2, .capacity_factor = 0.75f},
       .gated = false,
       .jitter = 0.2f,
       .biases = true},
      {.name = "experts choose",
       .router = {.experts = 3, .top_k = 1, .choice = RouterChoice::kExperts},
       .losses = {.z = 0.5f}},
      {.name = "every expert", .router = {.experts = 3, .top_k = 3}, .losses = kBatch},
      {.name = "one expert", .router = {.experts = 1, .top_k = 1}, .losses = kBatch},
      {.name = "one token of many experts",
       .router = {.experts = 40, .top_k = 6},
       .losses = kSequences,
       .layout = {{0, 1, 7}},
       .rows = 1},
      {.name = "padding alone", .layout = {}, .rows = 3},
  };
}

TEST(Moe, ReferenceGradientsMatchCentralDifferences) {
  for (Layer layer : every_layer()) {
    layer.hidden = 5;
    EXPECT_TRUE(reference_gradients_match(case_with_losses(layer)));
  }
}

TEST(Moe, EqualsThePlainLoopOverTokensAndExperts) {
  for (const Layer& layer : every_layer()) check_op(moe_case(layer));
}

// Experts with more rows than a tile, and more features than two; and experts of few rows beside them.
TEST(Moe, EqualsThePlainLoopAcrossTiles) {
  check_op(moe_case({.name = "wide",
                     .router = {.experts = 3, .top_k = 2, .normalize = true},
                     .losses = {.balance = 2, .z = 0.5f},
                     .hidden = 1030,
                     .layout = equal_sequences(1, 24),
                     .rows = 24}));
  check_op(moe_case({.name = "long",
                     .router = {.experts = 2, .top_k = 1},
                     .hidden = 4,
                     .layout = equal_sequences(2, 300),
                     .rows = 600}));
}

struct Ran {
  std::vector<float> y;
  RouterStatistics statistics;
};

// Of the values of a case, or of other inputs.
Ran run(const Layer& layer, const std::vector<float>* input = nullptr) {
  const OpCase c = moe_case(layer);
  const CaseData data = data_of(c);
  const Plain plain(layer);
  ThreadPool pool(2);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  std::vector<Param> params;
  for (size_t i = 0; i < data.params.size(); ++i) {
    params.push_back({data.params[i].data(), nullptr, c.params[i].rows, c.params[i].width});
  }
  std::vector<Var> inputs;
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    const std::vector<float>& values = input != nullptr && i == 0 ? *input : data.inputs[i];
    inputs.push_back(context.make(layer.rows, c.inputs[i].width));
    std::copy(values.begin(), values.end(), inputs.back().value.data());
  }
  Ran out;
  const Var y = run_moe(context, layer, plain.router, inputs, params, &out.statistics);
  out.y.assign(y.value.data(), y.value.data() + y.rows * y.width);
  return out;
}

TEST(Moe, StatisticsEqualThePlainComputation) {
  for (const Layer& layer : every_layer()) {
    SCOPED_TRACE(layer.name);
    const Plain plain(layer);
    const RouterStatistics s = run(layer).statistics;
    const Doubles logits = plain.logits(data_of(moe_case(layer)).values), p = ref::probabilities(plain.router, logits);
    const ref::Choices choices = ref::route(plain.router, logits, layer.layout);
    std::vector<int64_t> load(static_cast<size_t>(layer.router.experts));
    int64_t pairs = 0, dropped = 0, rows = 0;
    double entropy = 0;
    for (size_t i = 0; i < choices.expert.size(); ++i) {
      if (choices.expert[i] < 0) continue;
      ++pairs;
      ++load[static_cast<size_t>(choices.expert[i])];
      if (!choices.computed[i]) ++dropped;
    }
    for (const SequenceRows& q : layer.layout) {
      rows += q.rows;
      for (const double v : rows_of(p, q.first_row, q.rows, layer.router.experts)) entropy -= v * std::log(v);
    }
    EXPECT_EQ(s.load, load);
    EXPECT_EQ(s.pairs, pairs);
    EXPECT_EQ(s.dropped, dropped);
    EXPECT_EQ(s.rows, rows);
    EXPECT_EQ(s.dropped > 0, layer.router.capacity_factor > 0);
    EXPECT_NEAR(s.entropy, rows > 0 ? entropy / static_cast<double>(rows) : 0, tolerance::kLoss);
    const double balance =
        ref::balance_loss(plain.router, logits, choices, layer.layout, layer.losses.per_sequence).value;
    EXPECT_NEAR(s.balance_loss, static_cast<double>(layer.losses.balance) * balance, tolerance::kLoss);
    const double z = rows > 0 ? ref::z_loss(plain.router, logits, layer.layout).value : 0;
    EXPECT_NEAR(s.z_loss, static_cast<double>(layer.losses.z) * z, tolerance::kLoss * (1 + z));
  }
}

// To rounding: the product's library adds in an order that may change with the number of rows.
TEST(Moe, ARowsValueDoesNotDependOnTheOtherRows) {
  const Layer layer{.name = "many",
                    .router = {.experts = 6, .top_k = 2, .score = RouterScore::kSoftmaxOfChosen},
                    .layout = equal_sequences(1, 40),
                    .rows = 40};
  const std::vector<float> x = data_of(moe_case(layer)).inputs[0], all = run(layer).y;
  const auto part_of = [&](const Layer& l, const std::vector<float>& whole, int64_t first, int64_t rows) {
    Layer part = l;
    part.rows = rows;
    part.layout = equal_sequences(1, rows);
    const std::vector<float> input(x.begin() + first * l.width, x.begin() + (first + rows) * l.width);
    const Doubles expected(whole.begin() + first * l.out, whole.begin() + (first + rows) * l.out);
    return close(run(part, &input).y, expected, tolerance::kFloat);
  };
  for (int64_t r = 0; r < layer.rows; ++r) EXPECT_TRUE(part_of(layer, all, r, 1));
  EXPECT_TRUE(part_of(layer, all, 3, 19));
  // With a capacity, a row's choices depend on the rows before it.
  Layer full = layer;
  full.router.capacity_factor = 0.5f;
  EXPECT_FALSE(part_of(full, run(full).y, 20, 20));
}

// One expert whose gate is 1 is a dense layer, bit for bit.
TEST(Moe, OneExpertIsTheDenseLayer) {
  const Layer layer{.name = "one",
                    .router = {.experts = 1, .top_k = 1},
                    .end = {.dropout = true, .residual = true},
                    .layout = equal_sequences(1, 40),
                    .rows = 40};
  const OpCase sparse = moe_case(layer);
  OpCase dense = sparse;
  dense.op = [&](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    const FfnParams p{.activation = layer.activation, .gated = true, .in = params[1], .in_bias = {}, .down = params[2]};
    return ffn(context, inputs[0], p, layer.end.end(layer.out, inputs, params));
  };
  const CaseData data = data_of(sparse);
  const Outcome a = run_op(sparse, data, {}), b = run_op(dense, data, {});
  EXPECT_TRUE(same_bits(a.y, b.y));
  EXPECT_TRUE(same_bits(a.inputs, b.inputs));
  EXPECT_TRUE(same_bits(a.params, b.params));
}

TEST(Moe, NoRowsGiveNoRows) {
  const Layer layer{.name = "none"};
  const Plain plain(layer);
  ThreadPool pool(1);
  Arena arena;
  Tape tape;
  const OpContext context{pool, arena, &tape};
  const std::vector<float> weights(static_cast<size_t>(4 * 2 * 21 * 8));
  const std::vector<Param> params{{weights.data(), nullptr, 4, 8},
                                  {weights.data(), nullptr, 4 * layer.in_width(), 8},
                                  {weights.data(), nullptr, 4 * 8, 21}};
  RouterStatistics s{.load = {1}, .pairs = 5};
  Layer empty = layer;
  empty.layout = {};
  const Var y = run_moe(context, empty, plain.router, {Var{Buffer(), 0, 8, nullptr}}, params, &s);
  tape.backward();
  EXPECT_EQ(y.rows, 0);
  EXPECT_EQ(y.width, 8);
  EXPECT_EQ(s.load, std::vector<int64_t>(4));
  EXPECT_EQ(s.pairs, 0);
}

// A row of NaN spoils itself alone.
TEST(Moe, ARowOfNaNStaysWithItself) {
  const Layer layer{.name = "nan", .router = {.experts = 4, .top_k = 2, .score = RouterScore::kSigmoid}};
  std::vector<float> x = data_of(moe_case(layer)).inputs[0];
  const std::vector<float> before = run(layer, &x).y;
  std::fill_n(x.begin() + 2 * layer.width, layer.width, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> after = run(layer, &x).y;
  for (int64_t i = 0; i < layer.rows * layer.out; ++i) {
    const size_t at = static_cast<size_t>(i);
    if (i / layer.out == 2) {
      EXPECT_TRUE(std::isnan(after[at]));
    } else {
      EXPECT_NEAR(static_cast<double>(after[at]), static_cast<double>(before[at]), tolerance::kFloat);
    }
  }
}

}  // namespace
}  // namespace transept
