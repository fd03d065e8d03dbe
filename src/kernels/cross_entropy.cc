// Softmax cross-entropy of rows in three passes over the logits: their maximum; exponentials and their sum; the
// gradient, written over them. The slope of a cap must be taken from the logits before the exponentials replace them,
// so it is stored with these.
#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;

void FinishLogitsRows(float scale, const float* bias, float softcap, Rows logits) {
  const DF d;
  const float inverse = softcap == 0 ? 0 : 1 / softcap;
  for (int64_t r = 0; r < logits.rows; ++r) {
    float* z = logits.row(r);
    ForLanes(d, logits.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto shift = bias != nullptr ? part.Load(d, bias + i) : hn::Zero(d);
      auto v = hn::MulAdd(part.Load(d, z + i), hn::Set(d, scale), shift);
      if (softcap != 0) v = hn::Mul(Tanh(d, hn::Mul(v, hn::Set(d, inverse))), hn::Set(d, softcap));
      part.Store(v, d, z + i);
    });
  }
}

template <bool kCapped>
void CrossEntropyRowsOf(Rows logits, float softcap, const int32_t* targets, float gradient_scale, float* loss) {
  const DF d;
  for (int64_t r = 0; r < logits.rows; ++r) {
    float* z = logits.row(r);
    const int64_t n = logits.width;
    if (targets[r] == kIgnoredTarget) {
      loss[r] = 0;
      if (gradient_scale != 0) std::fill_n(z, n, 0.0f);
      continue;
    }
    const float maximum = MaxLanes(d, n, z), at_target = z[targets[r]];
    // 1 - (v / softcap)^2.
    const auto slope = [&](auto v) HWY_ATTR {
      const auto t = hn::Div(v, hn::Set(d, softcap));
      return hn::NegMulAdd(t, t, hn::Set(d, 1.0f));
    };
    const auto exponential = [&](int64_t i, auto part) HWY_ATTR {
      return part.Fill(d, Exp(d, hn::Sub(part.Load(d, z + i), hn::Set(d, maximum))), 0.0f);
    };
    float sum;
    if (gradient_scale == 0) {
      sum = SumLanes(d, n,
                     [&](int64_t i, auto part, auto& total) HWY_ATTR { total = hn::Add(total, exponential(i, part)); });
    } else {
      sum = SumLanes(d, n, [&](int64_t i, auto part, auto& total) HWY_ATTR {
        const auto e = exponential(i, part);
        if constexpr (kCapped) {
          part.Store(hn::Mul(e, slope(part.Load(d, z + i))), d, z + i);
        } else {
          part.Store(e, d, z + i);
        }
        total = hn::Add(total, e);
      });
      const float factor = gradient_scale / sum;
      ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
        part.Store(hn::Mul(part.Load(d, z + i), hn::Set(d, factor)), d, z + i);
      });
      z[targets[r]] -= kCapped ? gradient_scale * hn::GetLane(slope(hn::Set(d, at_target))) : gradient_scale;
    }
    // In double: the logarithm is small beside logits of thousands.
    loss[r] = static_cast<float>(std::log(static_cast<double>(sum)) +
                                 (static_cast<double>(maximum) - static_cast<double>(at_target)));
  }
}

void CrossEntropyRows(Rows logits, float softcap, const int32_t* targets, float gradient_scale, float* loss) {
  if (softcap == 0) return CrossEntropyRowsOf<false>(logits, softcap, targets, gradient_scale, loss);
  CrossEntropyRowsOf<true>(logits, softcap, targets, gradient_scale, loss);
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(FinishLogitsRows);
HWY_EXPORT(CrossEntropyRows);

void finish_logits_rows(float scale, const float* bias, float softcap, Rows logits) {
  HWY_DYNAMIC_DISPATCH(FinishLogitsRows)(scale, bias, softcap, logits);
}

void cross_entropy_rows(Rows logits, float softcap, const int32_t* targets, float gradient_scale, float* loss) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(logits, softcap, targets, gradient_scale, loss);
}

}  // namespace transept
#endif
