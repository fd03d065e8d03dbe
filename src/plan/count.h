// Non-negative 64-bit counts whose arithmetic refuses to wrap: a sum or product beyond 2^63 - 1 is an InputError, since
// only a context or a batch that no machine holds leads there.
#pragma once

#include <cstdint>

#include "base/problem.h"

namespace transept {

class Count {
 public:
  constexpr Count(int64_t value = 0) : value_(value) {}
  int64_t value() const { return value_; }

  friend Count operator+(Count a, Count b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &sum)) refuse();
    return sum;
  }
  friend Count operator*(Count a, Count b) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &product)) refuse();
    return product;
  }
  Count& operator+=(Count b) { return *this = *this + b; }
  friend auto operator<=>(const Count&, const Count&) = default;

 private:
  [[noreturn]] static void refuse() {
    throw InputError("plan", "a count of bytes or elements does not fit 64 bits",
                     "plan a smaller context, batch or model");
  }
  int64_t value_;
};

}  // namespace transept
