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

// How ForLanes' body loads and stores: a whole vector, or its first n lanes. Keep zeroes the lanes that a partial
// vector lacks.
struct WholeVector {
  template <class D, typename T = hn::TFromD<D>>
  HWY_INLINE hn::VFromD<D> Load(D d, const T* p) const {
    return hn::LoadU(d, p);
  }
  template <class D, class V, typename T = hn::TFromD<D>>
  HWY_INLINE void Store(V v, D d, T* p) const {
    hn::StoreU(v, d, p);
  }
  template <class D, class V>
  HWY_INLINE V Keep(D, V v) const {
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
  template <class D, class V>
  HWY_INLINE V Keep(D d, V v) const {
    return hn::IfThenElseZero(hn::FirstN(d, n), v);
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

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
