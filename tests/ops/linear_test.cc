// Linear layers with every end, against sums in double.
#include "ops/linear.h"

#include "double_ops.h"
#include "op_case.h"

namespace transept {
namespace {

OpCase linear_case(int64_t rows, int64_t in, int64_t out, EndParts parts) {
  OpCase c;
  c.name = std::to_string(rows) + " x " + std::to_string(in) + " to " + std::to_string(out) + parts.name();
  c.inputs = {{rows, in}};
  if (parts.residual) c.inputs.push_back({rows, out});
  c.params = {weight_of(out, in)};
  if (parts.bias) c.params.push_back({out, 1});
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return linear(context, inputs[0], params[0], parts.end(out, inputs, params));
  };
  c.forward = [=](const Values& v) { return parts.forward(times_transposed(v.inputs[0], v.params[0], in), out, v); };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values gradient{{{}}, {{}}};
    const Doubles g = parts.backward(dy, out, gradient);
    gradient.inputs[0] = times(g, v.params[0], in);
    gradient.params[0] = transposed_times(g, v.inputs[0], rows);
    return gradient;
  };
  return c;
}

TEST(Linear, ReferenceGradientsMatchCentralDifferences) {
  for (const EndParts& parts : every_end()) EXPECT_TRUE(reference_gradients_match(linear_case(3, 4, 5, parts)));
}

TEST(Linear, EqualsTheReferenceWithEveryEnd) {
  for (const EndParts& parts : every_end()) {
    for (const auto& [rows, in, out] : {std::array<int64_t, 3>{1, 8, 48}, {5, 48, 8}, {1, 17, 520}, {257, 17, 33}}) {
      check_op(linear_case(rows, in, out, parts));
    }
  }
}

TEST(Linear, EqualsTheReferenceAcrossTiles) {
  const EndParts all{true, true, true};
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{5, 1030, 520}, {257, 520, 48}, {300, 48, 1030}}) {
    check_op(linear_case(rows, in, out, all));
  }
}

// With ones through an identity, result and gradient are the mask itself: forward it is drawn tile by tile, backward
// over whole rows.
TEST(Linear, DropsTheSameElementsForwardAndBackward) {
  for (const auto& [rows, width] : {std::array<int64_t, 2>{1, 520}, {5, 1030}, {300, 520}}) {
    const DropoutMask mask = EndParts{.dropout = true}.mask(width);
    std::vector<float> factors, identity(static_cast<size_t>(width * width));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) factors.push_back(static_cast<float>(ref::dropout_factor(mask, r, c)));
    }
    for (int64_t i = 0; i < width; ++i) identity[static_cast<size_t>(i * width + i)] = 1;
    for_each_instruction_set([&] {
      ThreadPool pool(2);
      Arena arena;
      Tape tape;
      const OpContext context{pool, arena, &tape};
      const Var x = context.make(rows, width);
      std::fill_n(x.value.data(), x.value.size(), 1.f);
      const Var y = linear(context, x, {identity.data(), nullptr, width, width},
                           {.bias = {}, .dropout = mask, .residual = nullptr});
      EXPECT_TRUE(same_bits({y.value.data(), y.value.data() + y.value.size()}, factors));
      y.gradient->buffer = x.value;
      tape.backward();
      EXPECT_TRUE(same_bits({x.gradient->buffer.data(), x.gradient->buffer.data() + x.value.size()}, factors));
    });
  }
}

TEST(LinearDeath, ThePartsOfTheEndFitTheResult) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const Var x = context.make(2, 3), narrow = context.make(2, 3), low = context.make(1, 4);
  for (const Var* v : {&x, &narrow, &low}) std::fill_n(v->value.data(), v->value.size(), 1.f);
  const std::vector<float> memory(12, 1.f);
  const Param weight{memory.data(), nullptr, 4, 3}, wrong_bias{memory.data(), nullptr, 3, 1};
  EXPECT_DEATH(linear(context, low, weight), "does not hold");
  EXPECT_DEATH(linear(context, x, weight, {.bias = wrong_bias, .dropout = {}, .residual = nullptr}), "does not hold");
  EXPECT_DEATH(
      linear(context, x, weight, {.bias = {}, .dropout = EndParts{.dropout = true}.mask(3), .residual = nullptr}),
      "does not hold");
  for (const Var* v : {&narrow, &low}) {
    EXPECT_DEATH(linear(context, x, weight, {.bias = {}, .dropout = {}, .residual = v}), "does not hold");
  }
}

}  // namespace
}  // namespace transept
