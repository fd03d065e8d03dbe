// Elementary functions on vectors of float. Included once an instruction set (Highway): use inside HWY_BEFORE_NAMESPACE
// after foreach_target.h. Bounds hold with and without fused multiply-add and are tested in
// tests/kernels/vector_math_test.cc.
#if defined(TRANSEPT_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRANSEPT_KERNELS_VECTOR_MATH_INL_H_
#undef TRANSEPT_KERNELS_VECTOR_MATH_INL_H_
#else
#define TRANSEPT_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(x) within 1.5 ULP for results that are normal floats. Results that would be subnormal (x < -87.3365) are 0, as is
// exp(-inf); x beyond 88.7228 gives +inf; NaN gives NaN. Cody-Waite: x = n ln 2 + r with |r| <= ln(2) / 2, exp(r) = 1 +
// r + r^2 q(r).
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Exp(D d, V x) {
  // Adding 1.5 * 2^23 rounds to an integer that then stands in the low bits of the float.
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(shifted, magic);
  // ln 2 in two parts; n times the first (15 bits) is exact for every n that matters (8 bits).
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.4286068e-6f), r);
  // Minimax for the relative error of the whole: 3.1e-9.
  V q = hn::Set(d, 1.3814596e-3f);
  q = hn::MulAdd(q, r, hn::Set(d, 8.3687175e-3f));
  q = hn::MulAdd(q, r, hn::Set(d, 4.166839e-2f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.16666521f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.49999994f));
  const V y = hn::Add(hn::MulAdd(hn::Mul(r, r), q, r), hn::Set(d, 1.0f));
  // 2^n goes straight into the exponent: y is within [0.7, 1.42], so that every normal result is reached without
  // overflow on the way.
  const hn::RebindToUnsigned<D> du;
  const auto scaled = hn::Add(hn::BitCast(du, y), hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
  const V finite = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33654f)), hn::BitCast(d, scaled));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.72283f)), hn::Set(d, std::numeric_limits<float>::infinity()), finite);
}

// 1 / (1 + exp(-x)) within 3 ULP where it is a normal float; 0 and 1 at the infinities.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

// tanh(x) within 4e-7 absolute everywhere; NaN for NaN. x P(x^2) / Q(x^2), minimax for the absolute error on [0, 8.6]:
// 1.2e-8, the rest is the rounding of the two sums and of their quotient. Beyond, tanh is within 7e-8 of its value at
// 8.6.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V limit = hn::Set(d, 8.6f), a = hn::Abs(x);
  const V inside = hn::IfThenElse(hn::Gt(a, limit), limit, a);  // keeps NaN
  const V z = hn::Mul(inside, inside);
  V p = hn::Set(d, 1.3912343e-8f), q = hn::Set(d, 7.998633e-7f);
  p = hn::MulAdd(p, z, hn::Set(d, 2.0991332e-5f));
  q = hn::MulAdd(q, z, hn::Set(d, 3.3228818e-4f));
  p = hn::MulAdd(p, z, hn::Set(d, 3.5180368e-3f));
  q = hn::MulAdd(q, z, hn::Set(d, 2.5961623e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.13399681f));
  q = hn::MulAdd(q, z, hn::Set(d, 0.4673299f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.99999994f));
  q = hn::MulAdd(q, z, hn::Set(d, 1.0f));
  return hn::CopySign(hn::Div(hn::Mul(inside, p), q), x);
}

// The standard normal distribution function Phi(x), returned, and its density phi(x): 1 + erf(x / sqrt 2) = 2 Phi(x)
// without erf's cancellation at negative x. Absolute error 1.5e-7 for both; the relative error in the lower tail is
// about eps * (2 + x^2 / 2). exp(a^2 / 2) Phi(-a) for a >= 0 is smooth and falls from 1/2 towards 1 / (a sqrt(2 pi)): a
// polynomial in (a - 3) / (a + 3), minimax for the relative error on [0, 13.3], 6.7e-9. Beyond, the exponential is 0.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V NormalDistribution(D d, V x, V& density) {
  const V three = hn::Set(d, 3.0f), one = hn::Set(d, 1.0f), limit = hn::Set(d, 14.0f);
  const V a = hn::Abs(x);
  const V e = Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const V inside = hn::IfThenElse(hn::Gt(a, limit), limit, a);  // keeps NaN
  const V t = hn::Div(hn::Sub(inside, three), hn::Add(inside, three));
  V q = hn::Set(d, 5.415087e-5f);
  q = hn::MulAdd(q, t, hn::Set(d, 1.160374e-4f));
  q = hn::MulAdd(q, t, hn::Set(d, -3.3991135e-4f));
  q = hn::MulAdd(q, t, hn::Set(d, -9.841828e-4f));
  q = hn::MulAdd(q, t, hn::Set(d, 2.9047027e-3f));
  q = hn::MulAdd(q, t, hn::Set(d, 6.132183e-3f));
  q = hn::MulAdd(q, t, hn::Set(d, -4.6213314e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.12322502f));
  q = hn::MulAdd(q, t, hn::Set(d, -0.20640261f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.12151395f));
  const V tail = hn::Mul(e, q);
  density = hn::Mul(e, hn::Set(d, 0.39894228f));  // 1 / sqrt(2 pi)
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
