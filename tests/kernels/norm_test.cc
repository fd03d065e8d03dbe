#include "kernels/norm.h"

#include "kernels/norm_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

struct Kind {
  bool rms, weighted = true;
  float offset = 0;
  bool bias = false;
  const char* name;
};
constexpr Kind kKinds[] = {
    {.rms = true, .name = "RMSNorm"},
    {.rms = true, .offset = 1, .name = "RMSNorm, unit offset"},
    {.rms = true, .weighted = false, .offset = 1, .name = "RMSNorm without a weight"},
    {.rms = false, .bias = true, .name = "LayerNorm"},
    {.rms = false, .name = "LayerNorm without a bias"},
    {.rms = false, .weighted = false, .name = "LayerNorm without parameters"},
    {.rms = false, .weighted = false, .bias = true, .name = "LayerNorm without a weight"},
};
// Large enough that its place in the formula matters at every width, and that a row of one feature, whose gradient is
// nothing but eps's share, is not all cancellation.
constexpr float kEps = 0.1f;

struct Case {
  RowsShape shape;
  std::vector<float> x, dy, before, weight, bias, dweight,
      dbias;  // `before`, `dweight`, `dbias`: what gradients are added to

  explicit Case(const RowsShape& s) : shape(s) {
    const int64_t n = s.rows * s.width;
    x = random_floats(n, 1, 1.5f, 0.5f);
    dy = random_floats(n, 2);
    before = random_floats(n, 3);
    weight = random_floats(s.width, 4, 0.3f, 1.f);
    bias = random_floats(s.width, 5);
    dweight = random_floats(s.width, 6);
    dbias = random_floats(s.width, 7);
  }
};

// What the reference takes for the weight.
std::vector<double> factors(const Kind& kind, const std::vector<float>& weight) {
  std::vector<double> f(weight.size(), 1.0);
  if (!kind.weighted) return f;
  for (size_t i = 0; i < f.size(); ++i) f[i] = static_cast<double>(kind.offset) + static_cast<double>(weight[i]);
  return f;
}

std::vector<double> forward(const Kind& kind, const Case& c) {
  const std::vector<double> x = as_doubles(c.x), weight = factors(kind, c.weight), bias = as_doubles(c.bias);
  if (kind.rms) return ref::rmsnorm(x, weight, kEps);
  return ref::layernorm(x, weight, kind.bias ? std::span<const double>(bias) : std::span<const double>(), kEps);
}

ref::NormGradient backward(const Kind& kind, const Case& c) {
  const std::vector<double> dy = as_doubles(c.dy), x = as_doubles(c.x), weight = factors(kind, c.weight);
  return kind.rms ? ref::rmsnorm_backward(dy, x, weight, kEps) : ref::layernorm_backward(dy, x, weight, kEps);
}

std::vector<double> plus(std::vector<double> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += static_cast<double>(b[i]);
  return a;
}

class NormSweep : public ::testing::TestWithParam<RowsShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, NormSweep, ::testing::ValuesIn(kRowsShapes));

TEST_P(NormSweep, ForwardEqualsTheReference) {
  const Case c(GetParam());
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const std::vector<double> expected = forward(kind, c);
    const float* weight = kind.weighted ? c.weight.data() : nullptr;
    const float* bias = kind.bias ? c.bias.data() : nullptr;
    for_each_instruction_set([&] {
      for (const bool in_place : {false, true}) {
        for (const bool statistics : {false, true}) {
          GuardedRows x(c.shape, c.x), y(c.shape);
          std::vector<float> mean(static_cast<size_t>(c.shape.rows)), rstd(mean.size());
          GuardedRows& out = in_place ? x : y;
          if (kind.rms) {
            rmsnorm_forward(x.view(), weight, kind.offset, kEps, out.view(), statistics ? rstd.data() : nullptr);
          } else {
            layernorm_forward(x.view(), weight, bias, kEps, out.view(), statistics ? mean.data() : nullptr,
                              statistics ? rstd.data() : nullptr);
          }
          EXPECT_TRUE(close(out.values(), expected, tolerance::kKernel));
          EXPECT_TRUE(out.guard_intact());
        }
      }
    });
  }
}

TEST_P(NormSweep, BackwardEqualsTheReference) {
  const Case c(GetParam());
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const ref::NormGradient expected = backward(kind, c);
    const float* weight = kind.weighted ? c.weight.data() : nullptr;
    for_each_instruction_set([&] {
      GuardedRows x(c.shape, c.x), y(c.shape);
      std::vector<float> mean(static_cast<size_t>(c.shape.rows)), rstd(mean.size());
      if (kind.rms) {
        rmsnorm_forward(x.view(), weight, kind.offset, kEps, y.view(), rstd.data());
      } else {
        layernorm_forward(x.view(), weight, nullptr, kEps, y.view(), mean.data(), rstd.data());
      }
      enum class Output { kFresh, kAdded, kOverDy };
      for (const Output output : {Output::kFresh, Output::kAdded, Output::kOverDy}) {
        GuardedRows dy(c.shape, c.dy), dx(c.shape);
        if (output == Output::kAdded) dx.set(c.before);
        GuardedRows& out = output == Output::kOverDy ? dy : dx;
        std::vector<float> dweight = c.dweight, dbias = c.dbias;
        float* to = kind.weighted ? dweight.data() : nullptr;
        if (kind.rms) {
          rmsnorm_backward(dy.view(), x.view(), weight, kind.offset, rstd.data(), out.view(), output == Output::kAdded,
                           to);
        } else {
          layernorm_backward(dy.view(), x.view(), weight, mean.data(), rstd.data(), out.view(),
                             output == Output::kAdded, to, kind.bias ? dbias.data() : nullptr);
        }
        // LayerNorm of one feature has the gradient zero: what is left of dy there is held to the size of dy.
        const bool vanishes = !kind.rms && c.shape.width == 1;
        const std::vector<double> fresh = output == Output::kAdded ? plus(expected.dx, c.before) : expected.dx;
        const std::vector<double> actual = as_doubles(out.values());
        EXPECT_TRUE(vanishes ? close(plus(actual, c.dy), plus(fresh, c.dy), tolerance::kKernel)
                             : close(actual, fresh, tolerance::kKernel));
        if (kind.weighted) {
          EXPECT_TRUE(close(dweight, plus(expected.dweight, c.dweight), tolerance::kKernel));
        }
        if (kind.bias) {
          EXPECT_TRUE(close(dbias, plus(expected.dbias, c.dbias), tolerance::kKernel));
        }
        EXPECT_TRUE(out.guard_intact());
      }
    });
  }
}

// Offsets far larger than the spread: a variance taken as a difference of squares would lose every digit.
TEST(Norm, LayerNormKeepsItsDigitsFarFromZero) {
  const RowsShape shape{2, 200, 0, 0};
  const std::vector<float> values = random_floats(400, 1, 1, 1000), ones(200, 1.f);
  const std::vector<double> expected = ref::layernorm(as_doubles(values), as_doubles(ones), {}, kEps);
  for_each_instruction_set([&] {
    GuardedRows x(shape, values), y(shape);
    layernorm_forward(x.view(), ones.data(), nullptr, kEps, y.view(), nullptr, nullptr);
    EXPECT_TRUE(close(y.values(), expected, tolerance::kLayerNormFarFromZero));
  });
}

std::vector<double> doubles(int64_t n, uint64_t seed) { return as_doubles(random_floats(n, seed)); }

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(NormReference, GradientsMatchCentralDifferences) {
  for (const int64_t width : {1, 2, 7, 16}) {
    const std::vector<double> x = doubles(3 * width, 1), dy = doubles(3 * width, 2), w = doubles(width, 3),
                              b = doubles(width, 4);
    // A larger eps where the variance is zero: the root must be smooth over the step of the difference.
    const double eps = 1e-2;
    const auto rms = [&](const auto& in, const auto& weight) { return dot(dy, ref::rmsnorm(in, weight, eps)); };
    const auto layer = [&](const auto& in, const auto& weight, const auto& bias) {
      return dot(dy, ref::layernorm(in, weight, bias, eps));
    };
    const ref::NormGradient r = ref::rmsnorm_backward(dy, x, w, eps), l = ref::layernorm_backward(dy, x, w, eps);
    EXPECT_TRUE(gradient_matches([&](const auto& v) { return rms(v, w); }, x, r.dx, tolerance::kGradcheck));
    EXPECT_TRUE(gradient_matches([&](const auto& v) { return rms(x, v); }, w, r.dweight, tolerance::kGradcheck));
    if (width > 1) {  // with one feature, LayerNorm's output is its bias and the differences are exactly zero
      EXPECT_TRUE(gradient_matches([&](const auto& v) { return layer(v, w, b); }, x, l.dx, tolerance::kGradcheck));
      EXPECT_TRUE(gradient_matches([&](const auto& v) { return layer(x, v, b); }, w, l.dweight, tolerance::kGradcheck));
    }
    EXPECT_TRUE(gradient_matches([&](const auto& v) { return layer(x, w, v); }, b, l.dbias, tolerance::kGradcheck));
  }
}

TEST(NormReference, AWrongGradientIsSeen) {
  const std::vector<double> x = doubles(14, 1), dy = doubles(14, 2), w = doubles(7, 3);
  std::vector<double> dx = ref::rmsnorm_backward(dy, x, w, 1e-2).dx;
  dx[5] += 1e-4;
  EXPECT_FALSE(
      gradient_matches([&](const auto& v) { return dot(dy, ref::rmsnorm(v, w, 1e-2)); }, x, dx, tolerance::kGradcheck));
}

TEST(NormReference, HandValues) {
  // x = (3, 4): rms = sqrt(12.5); mean 3.5, deviation 0.5.
  const std::vector<double> x{3, 4}, w{2, 1}, b{0.5, 0};
  EXPECT_TRUE(
      close(ref::rmsnorm(x, w, 0), std::vector<double>{6 / std::sqrt(12.5), 4 / std::sqrt(12.5)}, tolerance::kDouble));
  EXPECT_TRUE(close(ref::layernorm(x, w, b, 0), std::vector<double>{-1.5, 1}, tolerance::kDouble));
}

}  // namespace
}  // namespace transept
