// Comparison of arrays, and gradient checks. The bound on each element is tolerance * (|expected| + root mean square of
// expected), so that small elements of a large array are held to the array's scale, and a bound that an array of zeros
// would pass is impossible: an expected array that is all zeros demands exact zeros.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace transept {

template <class A, class B>
::testing::AssertionResult close(std::span<const A> actual, std::span<const B> expected, double tolerance) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure() << "sizes differ: " << actual.size() << " and " << expected.size();
  }
  double squares = 0;
  for (const B e : expected) squares += static_cast<double>(e) * static_cast<double>(e);
  const double rms = expected.empty() ? 0 : std::sqrt(squares / static_cast<double>(expected.size()));
  size_t worst = 0;
  double worst_ratio = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    const double error = std::abs(a - e), bound = tolerance * (std::abs(e) + rms);
    const double ratio = error == 0 ? 0 : bound > 0 ? error / bound : INFINITY;
    if (!(ratio <= worst_ratio)) {  // NaN counts as worst
      worst_ratio = std::isnan(ratio) ? INFINITY : ratio;
      worst = i;
    }
  }
  if (worst_ratio <= 1) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "element " << worst << " of " << expected.size() << ": "
                                       << static_cast<double>(actual[worst]) << " instead of "
                                       << static_cast<double>(expected[worst]) << " (error is " << worst_ratio
                                       << " times the bound at tolerance " << tolerance << ", rms " << rms << ")";
}

template <class A, class B>
::testing::AssertionResult close(const std::vector<A>& actual, const std::vector<B>& expected, double tolerance) {
  return close(std::span<const A>(actual), std::span<const B>(expected), tolerance);
}

// The error of `actual` in units of the last place of a float of the exact value's size (of the smallest normal float,
// below that).
inline double ulps(float actual, double exact) {
  if (std::isnan(exact) || std::isnan(actual)) return std::isnan(exact) && std::isnan(actual) ? 0 : INFINITY;
  if (static_cast<double>(actual) == exact || actual == static_cast<float>(exact)) return 0;
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::abs(static_cast<double>(actual) - exact) / std::ldexp(1.0, exponent - 23);
}

// Central differences of f at x against `gradient`, every element.
inline ::testing::AssertionResult gradient_matches(const std::function<double(const std::vector<double>&)>& f,
                                                   std::vector<double> x, const std::vector<double>& gradient,
                                                   double tolerance) {
  std::vector<double> numeric(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i], h = 1e-5 * std::max(1.0, std::abs(at));
    x[i] = at + h;
    const double up = f(x);
    x[i] = at - h;
    const double down = f(x);
    x[i] = at;
    numeric[i] = (up - down) / (2 * h);
  }
  return close(gradient, numeric, tolerance);
}

}  // namespace transept
