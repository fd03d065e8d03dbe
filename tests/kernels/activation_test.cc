#include "kernels/activation.h"

#include <limits>

#include "kernels/activation_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr ActivationKind kKinds[] = {
    ActivationKind::kRelu,        ActivationKind::kGelu,    ActivationKind::kGeluTanh,   ActivationKind::kSilu,
    ActivationKind::kReluSquared, ActivationKind::kSigmoid, ActivationKind::kClampedSilu};

std::vector<double> values(ActivationKind kind, const std::vector<float>& x) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = ref::activation(kind, static_cast<double>(x[i]));
  return y;
}

std::vector<double> gradients(ActivationKind kind, const std::vector<float>& x, const std::vector<float>& dy) {
  std::vector<double> dx(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    dx[i] = static_cast<double>(dy[i]) * ref::activation_slope(kind, static_cast<double>(x[i]));
  return dx;
}

// Gate (0) or up (1) of rows that hold both.
Rows half(GuardedRows& rows, int64_t which) {
  const Rows whole = rows.view();
  return {whole.data + which * (whole.width / 2), whole.rows, whole.width / 2, whole.stride};
}

// How far inputs reach: the clamped kind's beyond its limits of 7.
float spread(ActivationKind kind) { return kind == ActivationKind::kClampedSilu ? 12 : 3; }

class ActivationSweep : public ::testing::TestWithParam<RowsShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, ActivationSweep, ::testing::ValuesIn(kRowsShapes));

TEST_P(ActivationSweep, PlainEqualsTheReference) {
  const RowsShape shape = GetParam();
  const std::vector<float> dy = random_floats(shape.rows * shape.width, 2);
  for (const ActivationKind kind : kKinds) {
    const std::vector<float> x = random_floats(shape.rows * shape.width, 1, spread(kind));
    const std::vector<double> y = values(kind, x), dx = gradients(kind, x, dy);
    for_each_instruction_set([&] {
      GuardedRows in(shape, x), d_out(shape, dy), out(shape), d_in(shape);
      activation_forward(kind, in.view(), out.view());
      EXPECT_TRUE(close(out.values(), y, tolerance::kKernel));
      EXPECT_TRUE(out.guard_intact());
      GuardedRows again(shape);
      activation_backward(kind, in.view(), d_out.view(), d_in.view(), again.view());
      EXPECT_TRUE(close(again.values(), y, tolerance::kKernel));
      EXPECT_TRUE(close(d_in.values(), dx, tolerance::kKernel));
      EXPECT_TRUE(again.guard_intact() && d_in.guard_intact());
      // Gradient over the input, output over the gradient.
      activation_backward(kind, in.view(), d_out.view(), in.view(), d_out.view());
      EXPECT_EQ(in.values(), d_in.values());
      EXPECT_EQ(d_out.values(), again.values());
      in.set(x);
      activation_forward(kind, in.view(), in.view());
      EXPECT_EQ(in.values(), out.values());
      EXPECT_TRUE(in.guard_intact() && d_out.guard_intact());
    });
  }
}

TEST_P(ActivationSweep, GatedEqualsTheReference) {
  const RowsShape shape = GetParam();
  const RowsShape doubled{shape.rows, 2 * shape.width, shape.gap, shape.misaligned};
  const std::vector<float> dy = random_floats(shape.rows * shape.width, 2);
  const size_t width = static_cast<size_t>(shape.width);
  for (const ActivationKind kind : kKinds) {
    const std::vector<float> x = random_floats(2 * shape.rows * shape.width, 1, spread(kind));
    const std::vector<double> y = ref::gated(kind, as_doubles(x), width);
    const std::vector<double> dx = ref::gated_backward(kind, as_doubles(x), as_doubles(dy), width);
    for_each_instruction_set([&] {
      GuardedRows in(doubled, x), d_out(shape, dy), out(shape), d_in(doubled), again(shape);
      gated_forward(kind, half(in, 0), half(in, 1), out.view());
      EXPECT_TRUE(close(out.values(), y, tolerance::kKernel));
      EXPECT_TRUE(out.guard_intact());
      gated_backward(kind, half(in, 0), half(in, 1), d_out.view(), half(d_in, 0), half(d_in, 1), again.view());
      EXPECT_TRUE(close(again.values(), y, tolerance::kKernel));
      EXPECT_TRUE(close(d_in.values(), dx, tolerance::kKernel));
      EXPECT_TRUE(again.guard_intact() && d_in.guard_intact());
      gated_backward(kind, half(in, 0), half(in, 1), d_out.view(), half(in, 0), half(in, 1), d_out.view());
      EXPECT_EQ(in.values(), d_in.values());
      EXPECT_EQ(d_out.values(), again.values());
      EXPECT_TRUE(in.guard_intact() && d_out.guard_intact());
    });
  }
}

TEST(Activation, FarFromZeroAndAtZero) {
  const std::vector<float> x{-1e6f, -200.f, -50.f, -0.f, 0.f, 50.f, 200.f, 1e6f};
  const std::vector<float> ones(x.size(), 1.f);
  const RowsShape shape{1, static_cast<int64_t>(x.size()), 0, 0};
  for_each_instruction_set([&] {
    for (const ActivationKind kind : kKinds) {
      GuardedRows in(shape, x), d_out(shape, ones), d_in(shape), out(shape);
      activation_backward(kind, in.view(), d_out.view(), d_in.view(), out.view());
      for (size_t i = 0; i < x.size(); ++i) {
        const bool positive = x[i] > 0, zero = x[i] == 0;
        // Value and slope: those of the positive and the negative asymptote, and at zero.
        double value = positive ? static_cast<double>(x[i]) : 0, slope = positive ? 1 : zero ? 0.5 : 0;
        if (kind == ActivationKind::kRelu && zero) slope = 0;
        if (kind == ActivationKind::kReluSquared) slope = 2 * value, value *= value;
        if (kind == ActivationKind::kSigmoid) value = slope, slope = zero ? 0.25 : 0;
        if (kind == ActivationKind::kClampedSilu && positive) value = ref::activation(kind, 7), slope = 0;
        EXPECT_NEAR(out.values()[i], static_cast<float>(value), tolerance::kVanishingTail) << x[i];
        EXPECT_NEAR(d_in.values()[i], static_cast<float>(slope), tolerance::kVanishingTail) << x[i];
      }
    }
  });
}

TEST(Activation, NaNIsNotHidden) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const RowsShape shape{1, 5, 0, 0};
  for_each_instruction_set([&] {
    for (const ActivationKind kind : kKinds) {
      GuardedRows in(shape, {0, 1, nan, 2, nan}), out(shape);
      activation_forward(kind, in.view(), out.view());
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(out.values()[i]), i == 2 || i == 4);
    }
  });
}

TEST(ActivationReference, GradientsMatchCentralDifferences) {
  const size_t width = 9;
  const std::vector<double> x = as_doubles(random_floats(36, 1, 2)), dy = as_doubles(random_floats(18, 2));
  for (const ActivationKind kind : kKinds) {
    const auto loss = [&](const std::vector<double>& v) {
      const std::vector<double> y = ref::gated(kind, v, width);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    std::vector<double> gradient = ref::gated_backward(kind, x, dy, width);
    EXPECT_TRUE(gradient_matches(loss, x, gradient, tolerance::kGradcheck));
    gradient[20] += 1e-4;
    EXPECT_FALSE(gradient_matches(loss, x, gradient, tolerance::kGradcheck)) << "a planted error";
  }
}

// Values of torch.nn.functional at x = 1.
TEST(ActivationReference, PublishedValues) {
  EXPECT_NEAR(ref::activation(ActivationKind::kGelu, 1), 0.8413447460685429, tolerance::kDouble);
  EXPECT_NEAR(ref::activation(ActivationKind::kGeluTanh, 1), 0.8411919906082768, tolerance::kDouble);
  EXPECT_NEAR(ref::activation(ActivationKind::kSilu, 1), 0.7310585786300049, tolerance::kDouble);
  EXPECT_EQ(ref::activation(ActivationKind::kRelu, 1), 1);
  EXPECT_EQ(ref::activation(ActivationKind::kReluSquared, 3), 9);
  EXPECT_NEAR(ref::activation(ActivationKind::kSigmoid, 1), 0.7310585786300049, tolerance::kDouble);
}

}  // namespace
}  // namespace transept
