// The elementary functions against the C library in double, over their ranges, on every instruction set.
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "support/compare.h"
#include "support/isa.h"
#include "support/tolerances.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_math_test.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

template <class F>
HWY_INLINE void Apply(const float* x, int64_t n, float* y, const F& f) {
  const hn::ScalableTag<float> d;
  ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR { part.Store(f(d, part.Load(d, x + i)), d, y + i); });
}

void ExpArray(const float* x, int64_t n, float* y) {
  Apply(x, n, y, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
}

void SigmoidArray(const float* x, int64_t n, float* y) {
  Apply(x, n, y, [](auto d, auto v) HWY_ATTR { return Sigmoid(d, v); });
}

void TanhArray(const float* x, int64_t n, float* y) {
  Apply(x, n, y, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
}

void DistributionArray(const float* x, int64_t n, float* y) {
  Apply(x, n, y, [](auto d, auto v) HWY_ATTR {
    auto density = v;
    return NormalDistribution(d, v, density);
  });
}

void DensityArray(const float* x, int64_t n, float* y) {
  Apply(x, n, y, [](auto d, auto v) HWY_ATTR {
    auto density = v;
    NormalDistribution(d, v, density);
    return density;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {
HWY_EXPORT(ExpArray);
HWY_EXPORT(SigmoidArray);
HWY_EXPORT(TanhArray);
HWY_EXPORT(DistributionArray);
HWY_EXPORT(DensityArray);

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Function {
  const char* name;
  void (*run)(const float* x, int64_t n, float* y);
  double (*exact)(double x);
  float low, high;  // the range of the bound
  double (*error)(float actual, double exact);
  double bound;
};

void exp_array(const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(ExpArray)(x, n, y); }

void sigmoid_array(const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(SigmoidArray)(x, n, y); }
void tanh_array(const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(TanhArray)(x, n, y); }
void distribution_array(const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(DistributionArray)(x, n, y); }
void density_array(const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(DensityArray)(x, n, y); }

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double exact_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double exact_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double absolute(float actual, double exact) { return std::abs(static_cast<double>(actual) - exact); }

const Function kFunctions[] = {
    {"exp", exp_array, std::exp, -87.33654f, 88.72283f, ulps, tolerance::kExpUlp},
    {"sigmoid", sigmoid_array, exact_sigmoid, -87.3f, 100.f, ulps, tolerance::kSigmoidUlp},
    {"tanh", tanh_array, std::tanh, -20.f, 20.f, absolute, tolerance::kTanhAbsolute},
    {"distribution", distribution_array, exact_distribution, -40.f, 40.f, absolute, tolerance::kNormalAbsolute},
    {"distribution", distribution_array, exact_distribution, -13.f, -1.f, ulps, tolerance::kNormalTailUlp},
    {"density", density_array, exact_density, -40.f, 40.f, absolute, tolerance::kNormalAbsolute},
};

// Evenly spaced floats (by value, and by bits near zero), 100,003 of each: no multiple of any vector.
std::vector<float> points(float low, float high) {
  constexpr int kCount = 100003;
  std::vector<float> x;
  for (int i = 0; i < kCount; ++i) x.push_back(low + (high - low) * static_cast<float>(i) / (kCount - 1));
  for (int i = 0; i < kCount; ++i) {
    const float small = std::ldexp(1.0f + static_cast<float>(i % 997) / 997, -(i % 40));
    if (small <= high) x.push_back(small);
    if (-small >= low) x.push_back(-small);
  }
  x.push_back(0.0f);
  return x;
}

double worst_error(const Function& f, const std::vector<float>& x, const std::vector<float>& y) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, f.error(y[i], f.exact(static_cast<double>(x[i]))));
  return worst;
}

TEST(VectorMath, WithinTheirBounds) {
  for_each_instruction_set([] {
    for (const Function& f : kFunctions) {
      const std::vector<float> x = points(f.low, f.high);
      std::vector<float> y(x.size(), kNaN);
      f.run(x.data(), static_cast<int64_t>(x.size()), y.data());
      // NaN would escape the maximum.
      for (const float v : y) ASSERT_FALSE(std::isnan(v)) << f.name;
      const double worst = worst_error(f, x, y);
      EXPECT_LE(worst, f.bound) << f.name;
    }
  });
}

TEST(VectorMath, TanhAtTheEnds) {
  for_each_instruction_set([] {
    const std::vector<float> x = {-kInf, -1e30f, -8.7f, 0.f, 1e-30f, 8.7f, 1e30f, kInf};
    std::vector<float> y(x.size() + 1);
    std::vector<float> with_nan = x;
    with_nan.push_back(kNaN);
    tanh_array(with_nan.data(), static_cast<int64_t>(y.size()), y.data());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_LE(absolute(y[i], std::tanh(static_cast<double>(x[i]))), tolerance::kTanhAbsolute) << x[i];
    EXPECT_EQ(y[3], 0);
    EXPECT_TRUE(std::isnan(y.back()));
  });
}

// The checker itself: an error of two units in one element is seen.
TEST(VectorMath, APlantedErrorIsSeen) {
  const Function& f = kFunctions[0];
  const std::vector<float> x = points(f.low, f.high);
  std::vector<float> y(x.size());
  f.run(x.data(), static_cast<int64_t>(x.size()), y.data());
  for (int i = 0; i < 3; ++i) y[777] = std::nextafter(y[777], kInf);
  EXPECT_GT(worst_error(f, x, y), f.bound);
}

TEST(VectorMath, ExpAtTheEnds) {
  for_each_instruction_set([] {
    const std::vector<float> x = {-kInf, -1e38f, -1e4f, -104.f, -87.4f, 0.f, -0.f, 88.8f, 1e4f, 1e38f, kInf, kNaN};
    const std::vector<float> expected = {0, 0, 0, 0, 0, 1, 1, kInf, kInf, kInf, kInf, kNaN};
    std::vector<float> y(x.size());
    exp_array(x.data(), static_cast<int64_t>(x.size()), y.data());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(ulps(y[i], static_cast<double>(expected[i])), 0) << x[i] << " gave " << y[i];
  });
}

TEST(VectorMath, SigmoidAndNormalAtTheEnds) {
  for_each_instruction_set([] {
    const std::vector<float> x = {-kInf, -1e30f, 0.f, 1e30f, kInf, kNaN}, expected = {0, 0, 0.5f, 1, 1, kNaN};
    std::vector<float> sigmoid(x.size()), distribution(x.size()), density(x.size());
    sigmoid_array(x.data(), static_cast<int64_t>(x.size()), sigmoid.data());
    distribution_array(x.data(), static_cast<int64_t>(x.size()), distribution.data());
    density_array(x.data(), static_cast<int64_t>(x.size()), density.data());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(ulps(sigmoid[i], static_cast<double>(expected[i])), 0) << x[i] << " gave " << sigmoid[i];
      EXPECT_LE(ulps(distribution[i], static_cast<double>(expected[i])), 1) << x[i] << " gave " << distribution[i];
      if (x[i] != 0) {
        EXPECT_EQ(ulps(density[i], std::isnan(x[i]) ? NAN : 0.0), 0) << x[i] << " gave " << density[i];
      }
    }
  });
}

}  // namespace
}  // namespace transept
#endif
