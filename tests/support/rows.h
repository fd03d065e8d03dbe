// Matrices for kernel tests: any stride, any misalignment, and a guard around every row. Everything starts as one
// particular NaN, so that an element that a kernel should write but does not stays NaN, and one that it should not
// write but does is seen.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "tensor/rows.h"

namespace transept {

struct RowsShape {
  int64_t rows, width;
  int64_t gap;         // floats between the end of a row and the start of the next
  int64_t misaligned;  // floats by which the first row is off a 64-byte boundary
};

// Around every vector length (4, 8, 16 floats) and its multiples by the unrolling, with and without gaps and
// misalignment.
inline constexpr RowsShape kRowsShapes[] = {
    {1, 1, 0, 0},   {3, 1, 2, 1},   {2, 3, 0, 1},   {3, 7, 2, 1},   {2, 8, 0, 0},    {1, 15, 1, 1},   {2, 16, 0, 0},
    {3, 17, 5, 1},  {0, 16, 0, 0},  {5, 31, 0, 1},  {4, 64, 0, 0},  {4, 64, 16, 1},  {3, 65, 0, 3},   {5, 127, 1, 1},
    {2, 128, 0, 0}, {4, 384, 0, 0}, {2, 384, 7, 1}, {1, 500, 0, 1}, {3, 1000, 3, 1}, {2, 1024, 0, 0}, {2, 2047, 1, 1},
};

inline void PrintTo(const RowsShape& s, std::ostream* out) {
  *out << s.rows << " rows of " << s.width << ", gap " << s.gap << ", misaligned by " << s.misaligned;
}

// Standard normal floats times `scale` plus `shift`, a pure function of the seed.
inline std::vector<float> random_floats(int64_t n, uint64_t seed, float scale = 1, float shift = 0) {
  const CounterRng rng(seed, Stream::kTest);
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(rng.normal(i)) * scale + shift;
  return x;
}

inline std::vector<double> as_doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

class GuardedRows {
 public:
  explicit GuardedRows(const RowsShape& s) : shape_(s) {
    const int64_t stride = std::max<int64_t>(1, s.width + s.gap);
    storage_.assign(static_cast<size_t>(kGuard + kAlign + s.misaligned + s.rows * stride + kGuard),
                    std::bit_cast<float>(kPoison));
    const int64_t past =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(storage_.data() + kGuard) / sizeof(float) % kAlign);
    view_ = {storage_.data() + kGuard + (kAlign - past) % kAlign + s.misaligned, s.rows, s.width, stride};
  }
  GuardedRows(const RowsShape& s, const std::vector<float>& values) : GuardedRows(s) { set(values); }

  Rows view() { return view_; }
  void set(const std::vector<float>& values) {
    for (int64_t r = 0; r < shape_.rows; ++r) {
      for (int64_t c = 0; c < shape_.width; ++c) view_.row(r)[c] = values[static_cast<size_t>(r * shape_.width + c)];
    }
  }
  std::vector<float> values() const {
    std::vector<float> out;
    for (int64_t r = 0; r < shape_.rows; ++r) out.insert(out.end(), view_.row(r), view_.row(r) + shape_.width);
    return out;
  }
  ::testing::AssertionResult guard_intact() const {
    for (size_t i = 0; i < storage_.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) - (view_.data - storage_.data());
      const bool inside = at >= 0 && at / view_.stride < shape_.rows && at % view_.stride < shape_.width;
      if (!inside && std::bit_cast<uint32_t>(storage_[i]) != kPoison) {
        return ::testing::AssertionFailure() << "float " << at << " from the start of the first row was written";
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr uint32_t kPoison = 0x7fc0dead;
  static constexpr int64_t kGuard = 32, kAlign = 16;
  RowsShape shape_;
  std::vector<float> storage_;
  Rows view_;
};

}  // namespace transept
