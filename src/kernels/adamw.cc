// The AdamW update in one pass over memory, which bounds it: seven streams of floats (gradient, m, v and p in; m, v and
// p out).
#include "kernels/adamw.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

void AdamWUpdate(const AdamWStep& step, int64_t n, const float* gradient, float* m, float* v, float* p) {
  const hn::ScalableTag<float> d;
  const float decay = step.lr * step.weight_decay, size = step.lr / step.bias_correction1,
              root = std::sqrt(step.bias_correction2);
  ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto g = hn::Mul(part.Load(d, gradient + i), hn::Set(d, step.gradient_scale));
    const auto before = part.Load(d, p + i);
    const auto decayed = hn::NegMulAdd(before, hn::Set(d, decay), before);
    const auto first = hn::MulAdd(part.Load(d, m + i), hn::Set(d, step.beta1), hn::Mul(g, hn::Set(d, 1 - step.beta1)));
    const auto second =
        hn::MulAdd(part.Load(d, v + i), hn::Set(d, step.beta2), hn::Mul(hn::Mul(g, g), hn::Set(d, 1 - step.beta2)));
    const auto denominator = hn::Add(hn::Div(hn::Sqrt(second), hn::Set(d, root)), hn::Set(d, step.eps));
    part.Store(first, d, m + i);
    part.Store(second, d, v + i);
    part.Store(hn::NegMulAdd(hn::Set(d, size), hn::Div(first, denominator), decayed), d, p + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(AdamWUpdate);

void adamw_update(const AdamWStep& step, int64_t n, const float* gradient, float* m, float* v, float* p) {
  HWY_DYNAMIC_DISPATCH(AdamWUpdate)(step, n, gradient, m, v, p);
}

}  // namespace transept
#endif
