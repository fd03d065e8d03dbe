// Elementwise work, column sums, dropout, and 16-bit storage; what each does is in elementwise.h.
#include "kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/rng.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;

// y[i] += x[i].
HWY_INLINE void AddTo(const float* x, int64_t n, float* y) {
  const DF d;
  ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    part.Store(hn::Add(part.Load(d, y + i), part.Load(d, x + i)), d, y + i);
  });
}

void AddRows(ConstRows x, Rows y) {
  for (int64_t r = 0; r < y.rows; ++r) AddTo(x.row(r), y.width, y.row(r));
}

void AddBias(const float* bias, Rows y) {
  for (int64_t r = 0; r < y.rows; ++r) AddTo(bias, y.width, y.row(r));
}

void SumColumns(ConstRows x, float* sums) {
  for (int64_t r = 0; r < x.rows; ++r) AddTo(x.row(r), x.width, sums);
}

void ScaleRows(float factor, Rows y) {
  const DF d;
  for (int64_t r = 0; r < y.rows; ++r) {
    float* row = y.row(r);
    ForLanes(d, y.width, [&](int64_t i, auto part) HWY_ATTR {
      part.Store(hn::Mul(part.Load(d, row + i), hn::Set(d, factor)), d, row + i);
    });
  }
}

double SumOfSquares(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  return SumLanes(d, n, [&](int64_t i, auto part, auto& sum) HWY_ATTR {
    const auto v = hn::PromoteTo(d, part.Load(narrow, x + i));
    sum = hn::MulAdd(v, v, sum);
  });
}

void ClampRows(float bound, Rows y, uint8_t* inside) {
  const DF d;
  const auto high = hn::Set(d, bound), low = hn::Set(d, -bound);
  for (int64_t r = 0; r < y.rows; ++r) {
    float* row = y.row(r);
    if (inside) {
      for (int64_t c = 0; c < y.width; ++c) inside[r * y.width + c] = std::abs(row[c]) <= bound;
    }
    ForLanes(d, y.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto v = part.Load(d, row + i);
      const auto at_most = hn::IfThenElse(hn::Gt(v, high), high, v);
      part.Store(hn::IfThenElse(hn::Lt(at_most, low), low, at_most), d, row + i);
    });
  }
}

// 0 * x is 0 for a finite x and NaN for any other, and a NaN stays in the sum.
bool AllFinite(const float* x, int64_t n) {
  const DF d;
  return SumLanes(d, n, [&](int64_t i, auto part, auto& sum) HWY_ATTR {
           sum = hn::MulAdd(part.Load(d, x + i), hn::Zero(d), sum);
         }) == 0;
}

// The words of `count` Philox counters from (first, high) on, four a counter: one counter in each 64-bit lane, each of
// its four words in the low half of a lane. What gathers in the high halves is never multiplied and masked away at the
// end.
void PhiloxWords(uint64_t key, uint64_t first, uint64_t high, int64_t count, uint32_t* words) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low_half = hn::Set(d, uint64_t{0xffffffff});
  const auto multiplier0 = hn::BitCast(d32, hn::Set(d, uint64_t{0xD2511F53})),
             multiplier1 = hn::BitCast(d32, hn::Set(d, uint64_t{0xCD9E8D57}));
  for (; i + lanes <= count; i += lanes) {
    const auto low = hn::Add(hn::Set(d, first + static_cast<uint64_t>(i)), hn::Iota(d, uint64_t{0}));
    auto c0 = low, c1 = hn::ShiftRight<32>(low), c2 = hn::Set(d, high), c3 = hn::ShiftRight<32>(c2);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = hn::MulEven(hn::BitCast(d32, c0), multiplier0),
                 p1 = hn::MulEven(hn::BitCast(d32, c2), multiplier1);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, uint64_t{k0}));
      c1 = p1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, uint64_t{k1}));
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    HWY_ALIGN uint64_t pairs[2 * hn::MaxLanes(d)];
    hn::StoreInterleaved2(hn::Or(hn::And(c0, low_half), hn::ShiftLeft<32>(c1)),
                          hn::Or(hn::And(c2, low_half), hn::ShiftLeft<32>(c3)), d, pairs);
    std::memcpy(words + 4 * i, pairs, static_cast<size_t>(lanes) * 16);
  }
#endif
  for (; i < count; ++i) {
    const std::array<uint32_t, 4> w = philox(key, first + static_cast<uint64_t>(i), high);
    std::copy(w.begin(), w.end(), words + 4 * i);
  }
}

void DropoutRows(const DropoutMask& mask, int64_t row, int64_t column, Rows y) {
  // An element goes when its word is below p * 2^32, that is below the least integer not under it.
  const double bound = std::ceil(static_cast<double>(mask.p) * 0x1p32);
  if (!(bound < 0x1p32)) {
    for (int64_t r = 0; r < y.rows; ++r) std::fill_n(y.row(r), y.width, 0.0f);
    return;
  }
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const uint32_t threshold = static_cast<uint32_t>(std::max(bound, 0.0));
  const float kept = 1.0f - mask.p;
  constexpr int64_t kCounters = 64;
  HWY_ALIGN uint32_t words[4 * kCounters];
  for (int64_t r = 0; r < y.rows; ++r) {
    uint64_t counter = mask.first + static_cast<uint64_t>((row + r) * mask.full_width + column);
    for (int64_t c = 0; c < y.width;) {
      const int64_t skip = static_cast<int64_t>(counter & 3), left = y.width - c;
      const int64_t n = std::min(left, 4 * kCounters - skip);
      PhiloxWords(mask.key, counter >> 2, mask.stream, (skip + n + 3) / 4, words);
      float* at = y.row(r) + c;
      const uint32_t* word = words + skip;
      ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
        const auto goes = hn::Lt(part.Load(du, word + i), hn::Set(du, threshold));
        const auto v = hn::Div(part.Load(d, at + i), hn::Set(d, kept));
        part.Store(hn::IfThenZeroElse(hn::RebindMask(d, goes), v), d, at + i);
      });
      c += n;
      counter += static_cast<uint64_t>(n);
    }
  }
}

// bits -> bits for each element of an array of 16-bit words, as 32-bit lanes.
template <class Convert>
HWY_INLINE void Widen(const uint16_t* x, int64_t n, float* y, const Convert& convert) {
  const DI d;
  const DF df;
  const hn::Rebind<uint16_t, DI> narrow;
  ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    part.Store(hn::BitCast(df, convert(hn::PromoteTo(d, part.Load(narrow, x + i)))), df, y + i);
  });
}

// convert(bits, magnitude) gives the magnitude's 15 bits; the sign is put back here.
template <class Convert>
HWY_INLINE void Narrow(const float* x, int64_t n, uint16_t* y, const Convert& convert) {
  const DI d;
  const DF df;
  const hn::Rebind<uint16_t, DI> narrow;
  ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto bits = hn::BitCast(d, part.Load(df, x + i));
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffff));
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000));
    part.Store(hn::DemoteTo(narrow, hn::Or(convert(magnitude), sign)), narrow, y + i);
  });
}

void F32FromBf16(const uint16_t* x, int64_t n, float* y) {
  Widen(x, n, y, [](auto bits) HWY_ATTR { return hn::ShiftLeft<16>(bits); });
}

void F32FromF16(const uint16_t* x, int64_t n, float* y) {
  const DI d;
  const DF df;
  Widen(x, n, y, [&](auto bits) HWY_ATTR {
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fff));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(d, (127 - 15) << 23));
    // A subnormal is its mantissa times 2^-24.
    const auto subnormal = hn::BitCast(d, hn::Mul(hn::ConvertTo(df, magnitude), hn::Set(df, 0x1p-24f)));
    const auto special = hn::Or(shifted, hn::Set(d, 0x7f800000));  // infinities and NaN
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400)), subnormal, normal);
    const auto result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7bff)), special, finite);
    return hn::Or(result, hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, 0x8000))));
  });
}

void Bf16FromF32(const float* x, int64_t n, uint16_t* y) {
  const DI d;
  Narrow(x, n, y, [&](auto magnitude) HWY_ATTR {
    const auto odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(d, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(magnitude, hn::Set(d, 0x7fff)), odd));
    const auto quiet = hn::Or(hn::ShiftRight<16>(magnitude), hn::Set(d, 0x40));
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000)), quiet, rounded);
  });
}

void F16FromF32(const float* x, int64_t n, uint16_t* y) {
  const DI d;
  const DF df;
  Narrow(x, n, y, [&](auto magnitude) HWY_ATTR {
    // Normal: round at bit 13 and rebias; a carry out of the mantissa makes the next exponent, 65,520 and up infinity.
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
    const auto rounded = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(d, 0x0fff)), odd));
    const auto normal = hn::Sub(rounded, hn::Set(d, (127 - 15) << 10));
    // Subnormal: one unit of the sum with 1/2 is 2^-24, a half's smallest step, so that the addition itself rounds.
    const auto half = hn::Set(df, 0.5f);
    const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(d, half));
    const auto quiet = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 0x03ff)), hn::Set(d, 0x7e00));
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, (127 - 14) << 23)), subnormal, normal);
    const auto bounded =
        hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, ((127 + 16) << 23) - 1)), hn::Set(d, 0x7c00), finite);
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000)), quiet, bounded);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(AddRows);
HWY_EXPORT(AddBias);
HWY_EXPORT(ScaleRows);
HWY_EXPORT(ClampRows);
HWY_EXPORT(SumColumns);
HWY_EXPORT(DropoutRows);
HWY_EXPORT(SumOfSquares);
HWY_EXPORT(AllFinite);
HWY_EXPORT(F32FromBf16);
HWY_EXPORT(F32FromF16);
HWY_EXPORT(Bf16FromF32);
HWY_EXPORT(F16FromF32);

void add_rows(ConstRows x, Rows y) { HWY_DYNAMIC_DISPATCH(AddRows)(x, y); }
void add_bias(const float* bias, Rows y) { HWY_DYNAMIC_DISPATCH(AddBias)(bias, y); }
void scale_rows(float factor, Rows y) { HWY_DYNAMIC_DISPATCH(ScaleRows)(factor, y); }
void clamp_rows(float bound, Rows y, uint8_t* inside) { HWY_DYNAMIC_DISPATCH(ClampRows)(bound, y, inside); }
void sum_columns(ConstRows x, float* sums) { HWY_DYNAMIC_DISPATCH(SumColumns)(x, sums); }

void copy_rows(ConstRows x, Rows y) {
  for (int64_t r = 0; r < y.rows; ++r) std::memmove(y.row(r), x.row(r), static_cast<size_t>(y.width) * sizeof(float));
}

void mask_rows(const uint8_t* inside, Rows y) {
  for (int64_t r = 0; r < y.rows; ++r) {
    float* row = y.row(r);
    for (int64_t c = 0; c < y.width; ++c) row[c] = inside[r * y.width + c] ? row[c] : 0.0f;
  }
}

void dropout_rows(const DropoutMask& mask, int64_t row, int64_t column, Rows y) {
  HWY_DYNAMIC_DISPATCH(DropoutRows)(mask, row, column, y);
}

double sum_of_squares(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x, n); }
bool all_finite(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(AllFinite)(x, n); }

void f32_from_bf16(const uint16_t* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(F32FromBf16)(x, n, y); }
void f32_from_f16(const uint16_t* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(F32FromF16)(x, n, y); }
void bf16_from_f32(const float* x, int64_t n, uint16_t* y) { HWY_DYNAMIC_DISPATCH(Bf16FromF32)(x, n, y); }
void f16_from_f32(const float* x, int64_t n, uint16_t* y) { HWY_DYNAMIC_DISPATCH(F16FromF32)(x, n, y); }

}  // namespace transept
#endif
