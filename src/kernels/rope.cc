// Rotary position embedding in place; formula in rope.h.
#include "kernels/rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

void RopeRotate(Rows x, int64_t heads, int64_t head_dim, int64_t rotated, const float* cos, const float* sin,
                int64_t table_stride, int direction) {
  const hn::ScalableTag<float> d;
  const int64_t half = rotated / 2;
  const float sign = direction < 0 ? -1.0f : 1.0f;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* c = cos + r * table_stride;
    const float* s = sin + r * table_stride;
    for (int64_t h = 0; h < heads; ++h) {
      float* first = x.row(r) + h * head_dim;
      float* second = first + half;
      ForLanes(d, half, [&](int64_t i, auto part) HWY_ATTR {
        const auto a = part.Load(d, first + i), b = part.Load(d, second + i);
        const auto cosine = part.Load(d, c + i), sine = hn::Mul(part.Load(d, s + i), hn::Set(d, sign));
        part.Store(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, first + i);
        part.Store(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, second + i);
      });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(RopeRotate);

void rope_rotate(Rows x, int64_t heads, int64_t head_dim, int64_t rotated, const float* cos, const float* sin,
                 int64_t table_stride, int direction) {
  HWY_DYNAMIC_DISPATCH(RopeRotate)(x, heads, head_dim, rotated, cos, sin, table_stride, direction);
}

}  // namespace transept
#endif
