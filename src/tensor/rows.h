// Views of token-major activations: `rows` rows of `width` floats, `stride` floats apart. Passed by value; own nothing.
#pragma once

#include <cstdint>

namespace transept {

struct ConstRows {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  const float* row(int64_t r) const { return data + r * stride; }
  ConstRows slice(int64_t first, int64_t count) const { return {data + first * stride, count, width, stride}; }
};

struct Rows {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  float* row(int64_t r) const { return data + r * stride; }
  Rows slice(int64_t first, int64_t count) const { return {data + first * stride, count, width, stride}; }
  operator ConstRows() const { return {data, rows, width, stride}; }
};

}  // namespace transept
