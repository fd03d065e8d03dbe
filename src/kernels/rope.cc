// Rotary position embedding in place; formula in rope.h.
#include "kernels/rope.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;

// Pair i of a head lies at i of `first` and i of `second`.
HWY_INLINE void RotateHalves(float* first, float* second, int64_t pairs, const float* c, const float* s, float sign) {
  const DF d;
  ForLanes(d, pairs, [&](int64_t i, auto part) HWY_ATTR {
    const auto a = part.Load(d, first + i), b = part.Load(d, second + i);
    const auto cosine = part.Load(d, c + i), sine = hn::Mul(part.Load(d, s + i), hn::Set(d, sign));
    part.Store(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, first + i);
    part.Store(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, second + i);
  });
}

// Pair i of a head lies at 2i and 2i + 1. A last vector that is not full goes through a copy.
HWY_INLINE void RotateNeighbours(float* x, int64_t pairs, const float* c, const float* s, float sign) {
  const DF d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float tail[2 * hn::MaxLanes(d)] = {};
  ForLanes(d, pairs, [&](int64_t i, auto part) HWY_ATTR {
    const int64_t n = std::min(lanes, pairs - i);
    float* at = x + 2 * i;
    if (n < lanes) {
      std::copy_n(at, 2 * n, tail);
      at = tail;
    }
    auto a = hn::Zero(d), b = hn::Zero(d);
    hn::LoadInterleaved2(d, at, a, b);
    const auto cosine = part.Load(d, c + i), sine = hn::Mul(part.Load(d, s + i), hn::Set(d, sign));
    hn::StoreInterleaved2(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, at);
    if (n < lanes) std::copy_n(tail, 2 * n, x + 2 * i);
  });
}

void RopeRotate(RopePairing pairing, Rows x, int64_t heads, int64_t head_dim, int64_t rotated, const float* cos,
                const float* sin, int64_t table_stride, int direction) {
  const int64_t pairs = rotated / 2;
  const float sign = direction < 0 ? -1.0f : 1.0f;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* c = cos + r * table_stride;
    const float* s = sin + r * table_stride;
    for (int64_t h = 0; h < heads; ++h) {
      float* head = x.row(r) + h * head_dim;
      if (pairing == RopePairing::kHalfSplit) {
        RotateHalves(head, head + pairs, pairs, c, s, sign);
      } else {
        RotateNeighbours(head, pairs, c, s, sign);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(RopeRotate);

void rope_rotate(RopePairing pairing, Rows x, int64_t heads, int64_t head_dim, int64_t rotated, const float* cos,
                 const float* sin, int64_t table_stride, int direction) {
  HWY_DYNAMIC_DISPATCH(RopeRotate)(pairing, x, heads, head_dim, rotated, cos, sin, table_stride, direction);
}

}  // namespace transept
#endif
