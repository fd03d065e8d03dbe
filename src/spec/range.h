// What a constraint of fields.h allows, as an interval. Reader, schema and error texts all work from this one form, so
// they agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "spec/fields.h"

namespace transept {

// No integer of a spec is larger, and no width derived from several of them: products of two then fit 64 bits.
inline constexpr int64_t kMaxInteger = int64_t{1} << 30;
// Numbers are used in float32 arithmetic, whose largest value is 3.4e38.
inline constexpr double kMaxNumber = 1e38;
// A total beyond this is no exact number in a JSON document (2^53); 16 bytes for each still fit 64 bits.
inline constexpr int64_t kMaxParameters = int64_t{1} << 53;

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;

  bool holds(double x) const { return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high); }
};

inline Range range_of(Any) { return {}; }
inline Range range_of(AtLeast c) { return {.low = c.low}; }
inline Range range_of(Above c) { return {.low = c.low, .low_open = true}; }
inline Range range_of(AboveUpTo c) { return {.low = c.low, .high = c.high, .low_open = true}; }
inline Range range_of(Between c) { return {.low = c.low, .high = c.high}; }
inline Range range_of(Fraction) { return {.low = 0, .high = 1, .high_open = true}; }

// The interval of a member of type T: the constraint within what the type holds.
template <class T, class C>
Range range_for(C constraint) {
  Range r = range_of(constraint);
  const double limit = std::is_same_v<T, int64_t> ? static_cast<double>(kMaxInteger) : kMaxNumber;
  r.low = std::max(r.low, -limit);
  if (r.high > limit) {
    r.high = limit;
    r.high_open = false;
  }
  return r;
}

}  // namespace transept
