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

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
