// Loops over any number of floats in whole vectors with one partial vector at the end. A partial load gives zeros in
// the missing lanes; nothing outside the array is read or written, on instruction sets without fault-free masks too.
// Included once an instruction set (Highway).
#if defined(TRANSEPT_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRANSEPT_KERNELS_LANES_INL_H_
#undef TRANSEPT_KERNELS_LANES_INL_H_
#else
#define TRANSEPT_KERNELS_LANES_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first n < Lanes(d) elements at p; the other lanes are zero.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::VFromD<D> LoadFirst(D d, const T* p, size_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, p, n * sizeof(T));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#endif
}

template <class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE void StoreFirst(V v, D d, T* p, size_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, n * sizeof(T));
#else
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#endif
}

// How ForLanes' body loads and stores: a whole vector, or its first n lanes. Fill puts `value` in the
// lanes that a partial vector lacks.
struct WholeVector {
  template <class D, typename T = hn::TFromD<D>>
  HWY_INLINE hn::VFromD<D> Load(D d, const T* p) const {
    return hn::LoadU(d, p);
  }
  template <class D, class V, typename T = hn::TFromD<D>>
  HWY_INLINE void Store(V v, D d, T* p) const {
    hn::StoreU(v, d, p);
  }
  template <class D, class V, typename T = hn::TFromD<D>>
  HWY_INLINE V Fill(D, V v, T) const {
    return v;
  }
};

struct PartialVector {
  size_t n;
  template <class D, typename T = hn::TFromD<D>>
  HWY_INLINE hn::VFromD<D> Load(D d, const T* p) const {
    return LoadFirst(d, p, n);
  }
  template <class D, class V, typename T = hn::TFromD<D>>
  HWY_INLINE void Store(V v, D d, T* p) const {
    StoreFirst(v, d, p, n);
  }
  template <class D, class V, typename T = hn::TFromD<D>>
  HWY_INLINE V Fill(D d, V v, T value) const {
    return hn::IfThenElse(hn::FirstN(d, n), v, hn::Set(d, value));
  }
};

// body(i, part) for i = 0, Lanes(d), ...: with part.Load and part.Store it may touch elements i to i + Lanes(d) of
// arrays of n.
template <class D, class Body>
HWY_INLINE void ForLanes(D d, int64_t n, const Body& body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, WholeVector{});
  if (i < n) body(i, PartialVector{static_cast<size_t>(n - i)});
}

// The sum over [0, n) of what term(i, part, sum) adds to `sum`, lane by lane in four interleaved accumulators, then
// across lanes. Missing lanes must add zero.
template <class D, class Term>
HWY_INLINE hn::TFromD<D> SumLanes(D d, int64_t n, const Term& term) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    term(i, WholeVector{}, s0);
    term(i + lanes, WholeVector{}, s1);
    term(i + 2 * lanes, WholeVector{}, s2);
    term(i + 3 * lanes, WholeVector{}, s3);
  }
  for (; i + lanes <= n; i += lanes) term(i, WholeVector{}, s0);
  if (i < n) term(i, PartialVector{static_cast<size_t>(n - i)}, s1);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// Two sums in one pass; term(i, part, a, b) adds to both. Two interleaved accumulators each.
template <class D, class Term>
HWY_INLINE void SumLanesOfTwo(D d, int64_t n, const Term& term, float& sum_a, float& sum_b) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a0 = hn::Zero(d), a1 = hn::Zero(d), b0 = hn::Zero(d), b1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    term(i, WholeVector{}, a0, b0);
    term(i + lanes, WholeVector{}, a1, b1);
  }
  for (; i + lanes <= n; i += lanes) term(i, WholeVector{}, a0, b0);
  if (i < n) term(i, PartialVector{static_cast<size_t>(n - i)}, a1, b1);
  sum_a = hn::GetLane(hn::SumOfLanes(d, hn::Add(a0, a1)));
  sum_b = hn::GetLane(hn::SumOfLanes(d, hn::Add(b0, b1)));
}

// The largest of the n elements at p, n > 0. A NaN may or may not come through.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE T MaxLanes(D d, int64_t n, const T* p) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto m0 = hn::Set(d, kLowest), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, p + i));
    m1 = hn::Max(m1, hn::LoadU(d, p + i + lanes));
    m2 = hn::Max(m2, hn::LoadU(d, p + i + 2 * lanes));
    m3 = hn::Max(m3, hn::LoadU(d, p + i + 3 * lanes));
  }
  ForLanes(d, n - i,
           [&](int64_t j, auto part) HWY_ATTR { m0 = hn::Max(m0, part.Fill(d, part.Load(d, p + i + j), kLowest)); });
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
