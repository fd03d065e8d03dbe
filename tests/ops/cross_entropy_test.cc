// The loss of a language model in runs of rows, against whole matrices of logits in double.
#include "ops/cross_entropy.h"

#include "double_ops.h"
#include "kernels/cross_entropy.h"
#include "kernels/cross_entropy_ref.h"
#include "kernels/distillation_ref.h"
#include "op_case.h"
#include "tensor/logit_rows.h"

namespace transept {
namespace {

constexpr float kScale = 0.125f;

std::vector<int32_t> some_targets(int64_t rows, int64_t vocab) {
  const CounterRng rng(6, Stream::kTest);
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < rows; ++r) {
    // Every fifth row has no target; the first and the last of the vocabulary occur.
    const int32_t random = static_cast<int32_t>(rng.below(static_cast<uint64_t>(r), static_cast<uint64_t>(vocab)));
    targets.push_back(r % 5 == 3 ? kIgnoredTarget : r % 5 == 1 ? static_cast<int32_t>(r % 2 ? vocab - 1 : 0) : random);
  }
  return targets;
}

// How the logits end, and how much of the loss is a teacher's.
struct Ending {
  float scale = 1, softcap = 0;
  bool bias = false;
  float teacher = 0;
};

// The result of the case is the loss of each row.
OpCase loss_case(int64_t rows, int64_t width, int64_t vocab, const std::vector<int32_t>& targets, const Ending& end) {
  OpCase c;
  c.name = std::to_string(rows) + " x " + std::to_string(width) + ", vocabulary " + std::to_string(vocab) + ", scale " +
           std::to_string(end.scale) + ", softcap " + std::to_string(end.softcap) + (end.bias ? " +bias" : "") +
           ", teacher " + std::to_string(end.teacher);
  const std::vector<float> taught = random_floats(rows * vocab, 9, 3);
  const Doubles teacher_logits = as_doubles(taught);
  c.inputs = {{rows, width}};
  c.params = {{vocab, width, 2 / std::sqrt(static_cast<float>(width))}};
  if (end.bias) c.params.push_back({vocab, 1});
  c.own_dy = kScale;
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    const Var per_row = context.make(rows, 1);
    const LogitsEnd logits_end{end.scale, end.softcap, end.bias ? params[1] : Param{}};
    const LossTeacher teacher{end.teacher, [&](int64_t first, Rows out) {
                                std::copy_n(taught.begin() + first * vocab, out.rows * vocab, out.data);
                              }};
    const LossSum sum = cross_entropy(context, inputs[0], params[0], logits_end, targets, kScale,
                                      {per_row.value.data(), static_cast<size_t>(rows)}, teacher);
    double nats = 0;
    for (int64_t r = 0; r < rows; ++r) nats += static_cast<double>(per_row.value.data()[r]);
    EXPECT_NEAR(sum.nats, nats, tolerance::kDoubleSum * nats);
    EXPECT_EQ(sum.tokens, std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; }));
    return per_row;
  };
  const auto row = [vocab](const Doubles& z, size_t r) {
    return std::span<const double>(z).subspan(r * static_cast<size_t>(vocab), static_cast<size_t>(vocab));
  };
  // f(product, scale, bias, softcap) of every element.
  const auto finished = [=](const Values& v, const auto& f) {
    Doubles z = times_transposed(v.inputs[0], v.params[0], width);
    for (size_t i = 0; i < z.size(); ++i) {
      const double bias = end.bias ? v.params[1][i % static_cast<size_t>(vocab)] : 0;
      z[i] = f(z[i], static_cast<double>(end.scale), bias, static_cast<double>(end.softcap));
    }
    return z;
  };
  c.forward = [=](const Values& v) {
    const Doubles z = finished(v, ref::finished_logit);
    Doubles losses;
    for (size_t r = 0; r < targets.size(); ++r)
      losses.push_back(
          ref::distillation(row(z, r), row(teacher_logits, r), static_cast<double>(end.teacher), targets[r]));
    return losses;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const Doubles z = finished(v, ref::finished_logit), slopes = finished(v, ref::finished_logit_slope);
    Doubles dz;
    for (size_t r = 0; r < targets.size(); ++r) {
      for (const double g :
           ref::distillation_backward(row(z, r), row(teacher_logits, r), static_cast<double>(end.teacher), targets[r]))
        dz.push_back(dy[r] * g);
    }
    for (size_t i = 0; i < dz.size(); ++i) dz[i] *= slopes[i];
    Values gradient;
    const Doubles d_bias = column_sums(dz, vocab);
    for (double& g : dz) g *= static_cast<double>(end.scale);
    gradient.inputs = {times(dz, v.params[0], width)};
    gradient.params = {transposed_times(dz, v.inputs[0], rows)};
    if (end.bias) gradient.params.push_back(d_bias);
    return gradient;
  };
  return c;
}

OpCase loss_case(int64_t rows, int64_t width, int64_t vocab, const Ending& end = {}) {
  return loss_case(rows, width, vocab, some_targets(rows, vocab), end);
}

constexpr Ending kEndings[] = {{.scale = 0.5f}, {.softcap = 2},
                               {.bias = true},  {.scale = 3, .softcap = 2, .bias = true},
                               {.teacher = 1},  {.scale = 3, .softcap = 2, .bias = true, .teacher = 0.3f}};

TEST(CrossEntropy, ReferenceGradientsMatchCentralDifferences) {
  EXPECT_TRUE(reference_gradients_match(loss_case(7, 3, 5)));
  for (const Ending& end : kEndings) EXPECT_TRUE(reference_gradients_match(loss_case(7, 3, 5, end)));
}

TEST(CrossEntropy, EqualsTheReference) {
  for (const int64_t rows : {1, 5, 257}) {
    check_op(loss_case(rows, 8, 29));
    check_op(loss_case(rows, 48, 520));
  }
  check_op(loss_case(5, 1030, 33));
}

TEST(CrossEntropy, EqualsTheReferenceOverSeveralRunsOfRows) {
  // Two full runs and a rest, and one full run and a rest of the least size.
  EXPECT_EQ(logit_rows(29), 1024);
  check_op(loss_case(2 * 1024 + 5, 8, 29));
  EXPECT_EQ(logit_rows(70'001), 64);
  check_op(loss_case(67, 4, 70'001));
}

TEST(CrossEntropy, EqualsTheReferenceWithEveryEndOfTheLogits) {
  for (const Ending& end : kEndings) {
    check_op(loss_case(5, 8, 29, end));
    check_op(loss_case(257, 48, 520, end));
    check_op(loss_case(1024 + 5, 8, 29, end));
  }
}

TEST(CrossEntropy, FinishedLogitsOfInferenceEqualTheReference) {
  const std::vector<float> products = random_floats(3 * 200, 1, 6), biases = random_floats(200, 2);
  Doubles expected;
  for (size_t i = 0; i < products.size(); ++i) {
    expected.push_back(
        ref::finished_logit(static_cast<double>(products[i]), 0.5, static_cast<double>(biases[i % 200]), 4));
  }
  for_each_instruction_set([&] {
    ThreadPool pool(2);
    std::vector<float> z = products;
    finish_logits(pool, {}, {z.data(), 3, 200, 200});
    EXPECT_EQ(z, products) << "nothing to do";
    finish_logits(pool, {0.5f, 4, {biases.data(), nullptr, 200, 1}}, {z.data(), 3, 200, 200});
    EXPECT_TRUE(close(z, expected, tolerance::kKernel));
  });
}

TEST(CrossEntropy, IgnoredRowsGiveNothing) {
  ThreadPool pool(2);
  Arena arena;
  const std::vector<float> head = random_floats(29 * 8, 1), hidden = random_floats(5 * 8, 2);
  std::vector<float> head_gradient(head.size());
  const std::vector<int32_t> targets(5, kIgnoredTarget);
  Tape tape;
  const OpContext context{pool, arena, &tape};
  const Var x = context.make(5, 8);
  std::copy(hidden.begin(), hidden.end(), x.value.data());
  std::vector<float> per_row(5, 1.f);
  const LossSum sum =
      cross_entropy(context, x, {head.data(), head_gradient.data(), 29, 8}, {}, targets, kScale, per_row);
  tape.backward();
  EXPECT_EQ(sum.nats, 0);
  EXPECT_EQ(sum.tokens, 0);
  EXPECT_EQ(per_row, std::vector<float>(5));
  EXPECT_EQ(head_gradient, std::vector<float>(head.size()));
  const float* dx = x.gradient->buffer.data();
  EXPECT_TRUE(std::all_of(dx, dx + 40, [](float g) { return g == 0; }));
}

// A loss that does not count has the gradient zero.
TEST(CrossEntropy, AScaleOfZeroGivesNoGradient) {
  ThreadPool pool(1);
  Arena arena;
  const std::vector<float> head = random_floats(29 * 8, 1), hidden = random_floats(5 * 8, 2);
  std::vector<float> head_gradient(head.size());
  const std::vector<int32_t> targets = some_targets(5, 29);
  Tape tape;
  const OpContext context{pool, arena, &tape};
  const Var x = context.make(5, 8);
  std::copy(hidden.begin(), hidden.end(), x.value.data());
  EXPECT_GT(cross_entropy(context, x, {head.data(), head_gradient.data(), 29, 8}, {}, targets, 0).nats, 0);
  tape.backward();
  EXPECT_EQ(head_gradient, std::vector<float>(head.size()));
  if (x.gradient->buffer) {
    const float* dx = x.gradient->buffer.data();
    EXPECT_TRUE(std::all_of(dx, dx + 40, [](float g) { return g == 0; }));
  }
}

}  // namespace
}  // namespace transept
