#include "cli/memory_watch.h"

#include <algorithm>

#include "base/memory.h"
#include "kernels/gemm.h"
#include "tensor/floats.h"

namespace transept {
namespace {

void first_products(ThreadPool& pool) {
  constexpr int64_t kRows = 2048, kWidth = 512;
  const Floats x(kRows * kWidth), y(kRows * kWidth), w(kWidth * kWidth);
  const Rows in{x.data(), kRows, kWidth, kWidth}, out{y.data(), kRows, kWidth, kWidth};
  gemm_xwt(pool, in, w.data(), kWidth, 0.f, out);
  gemm_xw(pool, out, w.data(), kWidth, 0.f, in);
  gemm_ytx(pool, out, in, w.data());
}

}  // namespace

MemoryWatch::MemoryWatch(ThreadPool& pool) {
  first_products(pool);
  base_ = resident_bytes();
  reset_peak_resident();
}

int64_t MemoryWatch::peak() const { return std::max<int64_t>(0, peak_resident_bytes() - base_); }

}  // namespace transept
