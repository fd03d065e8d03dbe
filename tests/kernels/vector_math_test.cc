// The elementary functions against the C library in double, over their ranges, on every instruction set.
#include <cmath>
#include <functional>
#include <limits>
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

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {
HWY_EXPORT(ExpArray);

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Function {
  const char* name;
  void (*run)(const float* x, int64_t n, float* y);
  double (*exact)(double x);
  float low, high;  // the range of the bound
  double bound_ulps;
};

void exp_array(const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(ExpArray)(x, n, y); }

const Function kFunctions[] = {
    {"exp", exp_array, std::exp, -87.33654f, 88.72283f, tolerance::kExpUlp},
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

double worst_ulps(const Function& f, const std::vector<float>& x, const std::vector<float>& y) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, ulps(y[i], f.exact(static_cast<double>(x[i]))));
  return worst;
}

TEST(VectorMath, WithinTheirBounds) {
  for_each_instruction_set([] {
    for (const Function& f : kFunctions) {
      const std::vector<float> x = points(f.low, f.high);
      std::vector<float> y(x.size(), kNaN);
      f.run(x.data(), static_cast<int64_t>(x.size()), y.data());
      const double worst = worst_ulps(f, x, y);
      EXPECT_LE(worst, f.bound_ulps) << f.name;
      RecordProperty(std::string(f.name) + instruction_set_name(), std::to_string(worst));
    }
  });
}

// The checker itself: an error of two units in one element is seen.
TEST(VectorMath, APlantedErrorIsSeen) {
  const Function& f = kFunctions[0];
  const std::vector<float> x = points(f.low, f.high);
  std::vector<float> y(x.size());
  f.run(x.data(), static_cast<int64_t>(x.size()), y.data());
  for (int i = 0; i < 3; ++i) y[777] = std::nextafter(y[777], kInf);
  EXPECT_GT(worst_ulps(f, x, y), f.bound_ulps);
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

}  // namespace
}  // namespace transept
#endif
