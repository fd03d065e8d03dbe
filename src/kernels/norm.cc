// RMSNorm and LayerNorm, forward and backward; formulas in norm.h. A row is read twice (three times for LayerNorm,
// whose variance is the mean of squared deviations, not a difference of large numbers), which costs little because a
// row stays in the first-level cache.
#include "kernels/norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;

// What a normalized feature is multiplied by: nothing, its weight, or its weight and an offset. One type each, so that
// the loops over features decide nothing.
struct NoGain {
  static constexpr bool kWeighted = false;
  template <class Part, class V>
  HWY_INLINE V Mul(V v, int64_t, Part) const {
    return v;
  }
  template <class Part, class V>
  HWY_INLINE V MulAdd(V v, int64_t, Part, V addend) const {
    return hn::Add(v, addend);
  }
};

struct WeightGain {
  static constexpr bool kWeighted = true;
  const float* weight;
  template <class Part, class V>
  HWY_INLINE V Mul(V v, int64_t i, Part part) const {
    return hn::Mul(v, part.Load(DF(), weight + i));
  }
  template <class Part, class V>
  HWY_INLINE V MulAdd(V v, int64_t i, Part part, V addend) const {
    return hn::MulAdd(v, part.Load(DF(), weight + i), addend);
  }
};

struct OffsetGain {
  static constexpr bool kWeighted = true;
  const float* weight;
  float offset;
  template <class Part, class V>
  HWY_INLINE V Mul(V v, int64_t i, Part part) const {
    return hn::Mul(v, hn::Add(part.Load(DF(), weight + i), hn::Set(DF(), offset)));
  }
};

template <class Gain>
void RmsNormForwardOf(ConstRows x, const Gain gain, float eps, Rows y, float* rstd) {
  const DF d;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    float* out = y.row(r);
    const float squares = SumLanes(d, x.width, [&](int64_t i, auto part, auto& sum) HWY_ATTR {
      const auto v = part.Load(d, in + i);
      sum = hn::MulAdd(v, v, sum);
    });
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(x.width) + eps);
    ForLanes(d, x.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto xhat = hn::Mul(part.Load(d, in + i), hn::Set(d, scale));
      part.Store(gain.Mul(xhat, i, part), d, out + i);
    });
    if (rstd != nullptr) rstd[r] = scale;
  }
}

template <class Gain>
void RmsNormBackwardOf(ConstRows dy, ConstRows x, const Gain gain, const float* rstd, Rows dx, bool accumulate,
                       float* dweight) {
  const DF d;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    const float* d_out = dy.row(r);
    float* d_in = dx.row(r);
    const float scale = rstd[r];
    const float dot = SumLanes(d, x.width, [&](int64_t i, auto part, auto& sum) HWY_ATTR {
      const auto g = gain.Mul(part.Load(d, d_out + i), i, part);
      sum = hn::MulAdd(g, part.Load(d, in + i), sum);
    });
    // mean(g * xhat) = dot * rstd / width, and one more rstd turns x into xhat.
    const float pull = dot * scale * scale / static_cast<float>(x.width);
    ForLanes(d, x.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto value = part.Load(d, in + i), upstream = part.Load(d, d_out + i), s = hn::Set(d, scale);
      const auto g = gain.Mul(upstream, i, part);
      auto result = hn::Mul(s, hn::NegMulAdd(value, hn::Set(d, pull), g));
      if (accumulate) result = hn::Add(result, part.Load(d, d_in + i));
      part.Store(result, d, d_in + i);
      if constexpr (Gain::kWeighted) {
        part.Store(hn::MulAdd(upstream, hn::Mul(value, s), part.Load(d, dweight + i)), d, dweight + i);
      }
    });
  }
}

template <class Gain>
void LayerNormForwardOf(ConstRows x, const Gain gain, const float* bias, float eps, Rows y, float* mean, float* rstd) {
  const DF d;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    float* out = y.row(r);
    const float width = static_cast<float>(x.width);
    const float center =
        SumLanes(d, x.width,
                 [&](int64_t i, auto part, auto& sum) HWY_ATTR { sum = hn::Add(sum, part.Load(d, in + i)); }) /
        width;
    const float squares = SumLanes(d, x.width, [&](int64_t i, auto part, auto& sum) HWY_ATTR {
      const auto v = part.Fill(d, hn::Sub(part.Load(d, in + i), hn::Set(d, center)), 0.0f);
      sum = hn::MulAdd(v, v, sum);
    });
    const float scale = 1.0f / std::sqrt(squares / width + eps);
    ForLanes(d, x.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto xhat = hn::Mul(hn::Sub(part.Load(d, in + i), hn::Set(d, center)), hn::Set(d, scale));
      const auto shift = bias != nullptr ? part.Load(d, bias + i) : hn::Zero(d);
      part.Store(gain.MulAdd(xhat, i, part, shift), d, out + i);
    });
    if (mean != nullptr) mean[r] = center;
    if (rstd != nullptr) rstd[r] = scale;
  }
}

template <class Gain>
void LayerNormBackwardOf(ConstRows dy, ConstRows x, const Gain gain, const float* mean, const float* rstd, Rows dx,
                         bool accumulate, float* dweight, float* dbias) {
  const DF d;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    const float* d_out = dy.row(r);
    float* d_in = dx.row(r);
    const float width = static_cast<float>(x.width), center = mean[r], scale = rstd[r];
    float sum_g = 0, sum_g_xhat = 0;
    SumLanesOfTwo(
        d, x.width,
        [&](int64_t i, auto part, auto& a, auto& b) HWY_ATTR {
          // Missing lanes of dy, and so of g, are zero.
          const auto g = gain.Mul(part.Load(d, d_out + i), i, part);
          const auto xhat = hn::Mul(hn::Sub(part.Load(d, in + i), hn::Set(d, center)), hn::Set(d, scale));
          a = hn::Add(a, g);
          b = hn::MulAdd(g, xhat, b);
        },
        sum_g, sum_g_xhat);
    const float mean_g = sum_g / width, mean_g_xhat = sum_g_xhat / width;
    ForLanes(d, x.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto upstream = part.Load(d, d_out + i), s = hn::Set(d, scale);
      const auto xhat = hn::Mul(hn::Sub(part.Load(d, in + i), hn::Set(d, center)), s);
      const auto g = gain.Mul(upstream, i, part);
      auto result = hn::Mul(s, hn::NegMulAdd(xhat, hn::Set(d, mean_g_xhat), hn::Sub(g, hn::Set(d, mean_g))));
      if (accumulate) result = hn::Add(result, part.Load(d, d_in + i));
      part.Store(result, d, d_in + i);
      if constexpr (Gain::kWeighted) {
        part.Store(hn::MulAdd(upstream, xhat, part.Load(d, dweight + i)), d, dweight + i);
      }
      if (dbias != nullptr) part.Store(hn::Add(part.Load(d, dbias + i), upstream), d, dbias + i);
    });
  }
}

void RmsNormForward(ConstRows x, const float* weight, float weight_offset, float eps, Rows y, float* rstd) {
  if (weight == nullptr) return RmsNormForwardOf(x, NoGain(), eps, y, rstd);
  if (weight_offset == 0) return RmsNormForwardOf(x, WeightGain{weight}, eps, y, rstd);
  RmsNormForwardOf(x, OffsetGain{weight, weight_offset}, eps, y, rstd);
}

void RmsNormBackward(ConstRows dy, ConstRows x, const float* weight, float weight_offset, const float* rstd, Rows dx,
                     bool accumulate, float* dweight) {
  if (weight == nullptr) return RmsNormBackwardOf(dy, x, NoGain(), rstd, dx, accumulate, dweight);
  if (weight_offset == 0) return RmsNormBackwardOf(dy, x, WeightGain{weight}, rstd, dx, accumulate, dweight);
  RmsNormBackwardOf(dy, x, OffsetGain{weight, weight_offset}, rstd, dx, accumulate, dweight);
}

void LayerNormForward(ConstRows x, const float* weight, const float* bias, float eps, Rows y, float* mean,
                      float* rstd) {
  if (weight == nullptr) return LayerNormForwardOf(x, NoGain(), bias, eps, y, mean, rstd);
  LayerNormForwardOf(x, WeightGain{weight}, bias, eps, y, mean, rstd);
}

void LayerNormBackward(ConstRows dy, ConstRows x, const float* weight, const float* mean, const float* rstd, Rows dx,
                       bool accumulate, float* dweight, float* dbias) {
  if (weight == nullptr) return LayerNormBackwardOf(dy, x, NoGain(), mean, rstd, dx, accumulate, dweight, dbias);
  LayerNormBackwardOf(dy, x, WeightGain{weight}, mean, rstd, dx, accumulate, dweight, dbias);
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(RmsNormForward);
HWY_EXPORT(RmsNormBackward);
HWY_EXPORT(LayerNormForward);
HWY_EXPORT(LayerNormBackward);

void rmsnorm_forward(ConstRows x, const float* weight, float weight_offset, float eps, Rows y, float* rstd) {
  HWY_DYNAMIC_DISPATCH(RmsNormForward)(x, weight, weight_offset, eps, y, rstd);
}

void rmsnorm_backward(ConstRows dy, ConstRows x, const float* weight, float weight_offset, const float* rstd, Rows dx,
                      bool accumulate, float* dweight) {
  HWY_DYNAMIC_DISPATCH(RmsNormBackward)(dy, x, weight, weight_offset, rstd, dx, accumulate, dweight);
}

void layernorm_forward(ConstRows x, const float* weight, const float* bias, float eps, Rows y, float* mean,
                       float* rstd) {
  HWY_DYNAMIC_DISPATCH(LayerNormForward)(x, weight, bias, eps, y, mean, rstd);
}

void layernorm_backward(ConstRows dy, ConstRows x, const float* weight, const float* mean, const float* rstd, Rows dx,
                        bool accumulate, float* dweight, float* dbias) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackward)(dy, x, weight, mean, rstd, dx, accumulate, dweight, dbias);
}

}  // namespace transept
#endif
