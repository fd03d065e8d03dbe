// Scale, bias and soft cap of logits; formulas in logits.h.
#include "kernels/logits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/logits.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;

void FinishLogitsRows(const LogitsShape& shape, const float* bias, Rows z) {
  const DF d;
  const auto scale = hn::Set(d, shape.scale), cap = hn::Set(d, shape.softcap);
  const auto inverse = hn::Set(d, shape.softcap > 0 ? 1 / shape.softcap : 0);
  for (int64_t r = 0; r < z.rows; ++r) {
    float* row = z.row(r);
    ForLanes(d, z.width, [&](int64_t i, auto part) HWY_ATTR {
      auto v = hn::Mul(part.Load(d, row + i), scale);
      if (bias) v = hn::Add(v, part.Load(d, bias + i));
      if (shape.softcap > 0) v = hn::Mul(cap, Tanh(d, hn::Mul(v, inverse)));
      part.Store(v, d, row + i);
    });
  }
}

void UncapLogitsGradient(float softcap, ConstRows z, Rows g) {
  const DF d;
  const auto one = hn::Set(d, 1.0f), inverse = hn::Set(d, 1 / softcap);
  for (int64_t r = 0; r < g.rows; ++r) {
    const float* capped = z.row(r);
    float* gradient = g.row(r);
    ForLanes(d, g.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto t = hn::Mul(part.Load(d, capped + i), inverse);
      part.Store(hn::Mul(part.Load(d, gradient + i), hn::NegMulAdd(t, t, one)), d, gradient + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(FinishLogitsRows);
HWY_EXPORT(UncapLogitsGradient);

void finish_logits_rows(const LogitsShape& shape, const float* bias, Rows z) {
  HWY_DYNAMIC_DISPATCH(FinishLogitsRows)(shape, bias, z);
}

void uncap_logits_gradient(float softcap, ConstRows z, Rows g) {
  HWY_DYNAMIC_DISPATCH(UncapLogitsGradient)(softcap, z, g);
}

}  // namespace transept
#endif
