// Matrix products and the end of a linear layer in double, each with its gradients, as plain sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/elementwise_ref.h"
#include "op_case.h"
#include "ops/linear.h"

namespace transept {

// x [rows, k] times the transpose of w [n, k].
inline Doubles times_transposed(const Doubles& x, const Doubles& w, int64_t k) {
  const size_t inner = static_cast<size_t>(k), rows = x.size() / inner, n = w.size() / inner;
  Doubles y(rows * n);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t i = 0; i < inner; ++i) sum += x[r * inner + i] * w[j * inner + i];
      y[r * n + j] = sum;
    }
  }
  return y;
}

// dy [rows, n] times w [n, k].
inline Doubles times(const Doubles& dy, const Doubles& w, int64_t k) {
  const size_t width = static_cast<size_t>(k), n = w.size() / width, rows = dy.size() / n;
  Doubles dx(rows * width);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < width; ++i) dx[r * width + i] += dy[r * n + j] * w[j * width + i];
    }
  }
  return dx;
}

// The transpose of dy [rows, n] times x [rows, k].
inline Doubles transposed_times(const Doubles& dy, const Doubles& x, int64_t rows) {
  const size_t count = static_cast<size_t>(rows), n = dy.size() / count, width = x.size() / count;
  Doubles dw(n * width);
  for (size_t r = 0; r < count; ++r) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < width; ++i) dw[j * width + i] += dy[r * n + j] * x[r * width + i];
    }
  }
  return dw;
}

inline void add_to_rows(const Doubles& bias, Doubles& y) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
}

inline Doubles column_sums(const Doubles& g, int64_t width) {
  Doubles sums(static_cast<size_t>(width));
  for (size_t i = 0; i < g.size(); ++i) sums[i % sums.size()] += g[i];
  return sums;
}

inline Doubles dropped(const DropoutMask& mask, Doubles y, int64_t width) {
  if (mask.p <= 0) return y;
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i);
    y[i] *= ref::dropout_factor(mask, at / width, at % width);
  }
  return y;
}

// Which parts the end of a linear layer has. In a case, the residual is the last input and the bias the last parameter.
struct EndParts {
  bool bias = false, dropout = false, residual = false;

  std::string name() const {
    return std::string(bias ? " +bias" : "") + (dropout ? " +dropout" : "") + (residual ? " +residual" : "");
  }
  DropoutMask mask(int64_t width) const {
    // A start that is no multiple of the generator's four words.
    return {.key = 11,
            .stream = 0x300000005,
            .first = (uint64_t{3} << 40) + 1,
            .full_width = width,
            .p = dropout ? 0.3f : 0.f};
  }
  LinearEnd end(int64_t width, const std::vector<Var>& inputs, const std::vector<Param>& params) const {
    return {.bias = bias ? params.back() : Param{},
            .dropout = mask(width),
            .residual = residual ? &inputs.back() : nullptr};
  }
  Doubles forward(Doubles y, int64_t width, const Values& v) const {
    if (bias) add_to_rows(v.params.back(), y);
    y = dropped(mask(width), std::move(y), width);
    return residual ? v.inputs.back() + y : y;
  }
  // Gives the gradient before the dropout, and adds those of bias and residual to their lists.
  Doubles backward(const Doubles& dy, int64_t width, Values& gradient) const {
    if (residual) gradient.inputs.push_back(dy);
    Doubles g = dropped(mask(width), dy, width);
    if (bias) gradient.params.push_back(column_sums(g, width));
    return g;
  }
};

inline std::vector<EndParts> every_end() {
  std::vector<EndParts> ends;
  for (int i = 0; i < 8; ++i) ends.push_back({(i & 1) != 0, (i & 2) != 0, (i & 4) != 0});
  return ends;
}

// Weights whose products with normal inputs are about normal again.
inline Operand weight_of(int64_t out, int64_t in) { return {out, in, 1 / std::sqrt(static_cast<float>(in))}; }

}  // namespace transept
