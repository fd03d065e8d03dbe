#include "kernels/weights.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/weights.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace transept::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;

struct F32 {
  using Stored = float;
  template <class D>
  static hn::Vec<D> load(D d, const float* p) {
    return hn::LoadU(d, p);
  }
};
struct Bf16 {
  using Stored = uint16_t;
  template <class D>
  static hn::Vec<D> load(D d, const uint16_t* p) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, p))));
  }
};
struct F16 {
  using Stored = uint16_t;
  template <class D>
  static hn::Vec<D> load(D d, const uint16_t* p) {
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
  }
};

// y[r * y_stride] = sum over k of x[r][k] w[k], for kRows rows. Two sums a row hide the latency of a multiply-add.
template <class Form, int kRows>
void dot_rows(const float* HWY_RESTRICT x, int64_t x_stride, const typename Form::Stored* HWY_RESTRICT w, int64_t k,
              float* HWY_RESTRICT y, int64_t y_stride) {
  const DF d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<DF> sums[kRows][2];
  for (auto& row : sums) row[0] = row[1] = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= k; i += 2 * lanes) {
    const auto w0 = Form::load(d, w + i), w1 = Form::load(d, w + i + lanes);
    for (int r = 0; r < kRows; ++r) {
      sums[r][0] = hn::MulAdd(hn::LoadU(d, x + r * x_stride + i), w0, sums[r][0]);
      sums[r][1] = hn::MulAdd(hn::LoadU(d, x + r * x_stride + i + lanes), w1, sums[r][1]);
    }
  }
  // The rest in a padded vector.
  alignas(64) typename Form::Stored tail[32] = {};
  alignas(64) float x_tail[32] = {};
  const int64_t rest = k - i;
  std::copy_n(w + i, rest, tail);
  for (int r = 0; r < kRows; ++r) {
    if (rest > 0) {
      std::copy_n(x + r * x_stride + i, rest, x_tail);
      for (int64_t j = 0; j < rest; j += lanes)
        sums[r][0] = hn::MulAdd(hn::Load(d, x_tail + j), Form::load(d, tail + j), sums[r][0]);
    }
    y[r * y_stride] = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[r][0], sums[r][1])));
  }
}

template <class Form>
void dot_block(const float* x, int64_t rows, int64_t x_stride, const typename Form::Stored* w, int64_t n, int64_t k,
               float* y, int64_t y_stride) {
  for (int64_t j = 0; j < n; ++j) {
    const typename Form::Stored* row = w + j * k;
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) dot_rows<Form, 4>(x + r * x_stride, x_stride, row, k, y + r * y_stride + j, y_stride);
    for (; r < rows; ++r) dot_rows<Form, 1>(x + r * x_stride, x_stride, row, k, y + r * y_stride + j, y_stride);
  }
}

}  // namespace

void DotF32(const float* x, int64_t rows, int64_t x_stride, const float* w, int64_t n, int64_t k, float* y,
            int64_t y_stride) {
  dot_block<F32>(x, rows, x_stride, w, n, k, y, y_stride);
}
void DotBf16(const float* x, int64_t rows, int64_t x_stride, const uint16_t* w, int64_t n, int64_t k, float* y,
             int64_t y_stride) {
  dot_block<Bf16>(x, rows, x_stride, w, n, k, y, y_stride);
}
void DotF16(const float* x, int64_t rows, int64_t x_stride, const uint16_t* w, int64_t n, int64_t k, float* y,
            int64_t y_stride) {
  dot_block<F16>(x, rows, x_stride, w, n, k, y, y_stride);
}

}  // namespace transept::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {
namespace {

HWY_EXPORT(DotF32);
HWY_EXPORT(DotBf16);
HWY_EXPORT(DotF16);

// Up to this many rows of x are multiplied as the weights stream by. Weights in floats need no widening, so that the
// library's product is ahead as soon as reading them is not all that takes time.
constexpr int64_t kFewRows = 16, kFewRowsOfFloats = 4;
// A panel of widened weights: 512 KiB, half a second-level cache.
constexpr int64_t kPanelRows = 512, kPanelColumns = 256;

void widen(DType dtype, const uint16_t* from, int64_t n, float* to) {
  (dtype == DType::kBF16 ? f32_from_bf16 : f32_from_f16)(from, n, to);
}

// Calls body(data, row of the matrix, rows) for each run of stored rows within [first, first + n).
template <class F>
void for_runs(const Weight& w, int64_t first, int64_t n, const F& body) {
  for (const StoredRows& run : w.stored) {
    const int64_t from = std::max(first, run.first_row), to = std::min(first + n, run.first_row + run.rows);
    if (from < to) body(run.data + (from - run.first_row) * w.columns, from, to - from);
  }
}

// Y = X W^T for rows that lie together, by panels.
void multiply_panels(ConstRows x, DType dtype, const uint16_t* w, int64_t n, int64_t k, Rows y) {
  alignas(64) thread_local static float panel[kPanelRows * kPanelColumns];
  for (int64_t j = 0; j < n; j += kPanelRows) {
    const int64_t rows = std::min(kPanelRows, n - j);
    for (int64_t c = 0; c < k; c += kPanelColumns) {
      const int64_t columns = std::min(kPanelColumns, k - c);
      for (int64_t r = 0; r < rows; ++r) widen(dtype, w + (j + r) * k + c, columns, panel + r * kPanelColumns);
      gemm_tile(Transpose::kNo, Transpose::kYes, x.rows, rows, columns, 1.f, x.data + c, x.stride, panel, kPanelColumns,
                c == 0 ? 0.f : 1.f, y.data + j, y.stride);
    }
  }
}

}  // namespace

void read_weight_row(const Weight& w, int64_t row, float* to) {
  if (w.values) {
    std::copy_n(w.values + row * w.columns, w.columns, to);
  } else {
    for_runs(w, row, 1, [&](const uint16_t* data, int64_t, int64_t) { widen(w.dtype, data, w.columns, to); });
  }
}

void multiply_tile(ConstRows x, const Weight& w, int64_t first, int64_t n, Rows y) {
  TRANSEPT_CHECK(x.width == w.columns && x.rows == y.rows);
  if (w.values) {
    const float* values = w.values + first * x.width;
    if (x.rows > kFewRowsOfFloats) {
      gemm_tile(Transpose::kNo, Transpose::kYes, x.rows, n, x.width, 1.f, x.data, x.stride, values, x.width, 0.f,
                y.data, y.stride);
    } else {
      HWY_DYNAMIC_DISPATCH(DotF32)(x.data, x.rows, x.stride, values, n, x.width, y.data, y.stride);
    }
    return;
  }
  for_runs(w, first, n, [&](const uint16_t* data, int64_t row, int64_t rows) {
    const Rows to{y.data + (row - first), x.rows, rows, y.stride};
    if (x.rows > kFewRows) {
      multiply_panels(x, w.dtype, data, rows, x.width, to);
    } else if (w.dtype == DType::kBF16) {
      HWY_DYNAMIC_DISPATCH(DotBf16)(x.data, x.rows, x.stride, data, rows, x.width, to.data, to.stride);
    } else {
      HWY_DYNAMIC_DISPATCH(DotF16)(x.data, x.rows, x.stride, data, rows, x.width, to.data, to.stride);
    }
  });
}

void multiply(ThreadPool& pool, ConstRows x, const Weight& w, int64_t n, Rows y, const TileEpilogue& epilogue) {
  TRANSEPT_CHECK(x.rows == y.rows && n == y.width);
  for_tiles(pool, x.rows, n, [&](const Tile& t) {
    const Rows out{y.row(t.row) + t.column, t.rows, t.columns, y.stride};
    multiply_tile(x.slice(t.row, t.rows), w, t.column, t.columns, out);
    if (epilogue) epilogue(out, t.row, t.column);
  });
}

}  // namespace transept
#endif  // HWY_ONCE
