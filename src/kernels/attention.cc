// Attention in tiles (arXiv:2205.14135, arXiv:2307.08691), float32 throughout.
//
// Columns. The query heads that share a KV head see the same keys, so the unit of work is a run of `columns` of one KV
// head: column c is query row c / group, head c % group of its group. Columns are in order of position, hence those
// that see a given key are an interval.
//
// Orientation. Scores are held transposed, S^T = K (scale Q)^T, a row a key and a column a query: running maxima and
// sums then go down vectors without a horizontal step, a mask is a fill at the two ends of a row, and the products are
// those the library does fastest. On one core (Zen 5, 256 x 256 tiles, head size 64, its peak about 256): K Q^T with
// Q^T packed once a unit 243 GFLOP/s against 223 for Q K^T; O^T = V^T P^T 234 against 213-219 for O = P V. The packing
// is 1/keys of the work.
//
// Forward, for each block of keys (algorithm 1 of arXiv:2307.08691):
//   m' = max(m, max_j s_j),  P = exp(S - m'),  l = l e^(m - m') + sum_j P_j,  O = O e^(m - m') + P V,    out = O / l,
//   lse = m + log l.
// Backward, with D = rowsum(dO * O):
//   P = exp(S - lse),  dV += P^T dO,  dS = P * (dO V^T - D),  dQ = scale dS K,  dK += scale dS^T Q.
// With sinks, m starts at the sink and l at 1, and dsink = -sum exp(sink - lse) D. With a cap, S = cap T and
// T = tanh(scale Q K^T / cap), hence dS, which is the gradient of the bias too, becomes dS * (1 - T^2).
//
// Bias by distance. Entry (distance, head of the group) of a KV head's table stands at distance * group + head: columns
// being query rows times heads, neighbours of one key read neighbours of the table, and the next key reads `group`
// before that. So a bias is one vector load and add a vector of scores, and its gradient the sum of dS along diagonals.
#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept::HWY_NAMESPACE {
namespace {
// Blocks are padded to 16 columns, so that no vector up to 512 bits has a tail.
using D16 = hn::CappedTag<float, 16>;
using D4 = hn::CappedTag<float, 4>;

// Rows are short and far apart: the machine does not guess the next one.
template <class T>
void prefetch_rows(T* const* rows, int64_t begin, int64_t end, int64_t width) {
  for (int64_t c = begin; c < end; ++c) {
    for (int64_t d = 0; d < width; d += 16) hwy::Prefetch(rows[c] + d);
  }
}

// t[d][c] = scale * rows[c][d].
void transpose_in(const float* const* rows, int64_t columns, int64_t width, float scale, float* HWY_RESTRICT t,
                  int64_t ld) {
  const int64_t whole_columns = hn::MaxLanes(D4()) == 4 ? columns / 4 * 4 : 0, whole_width = width / 4 * 4;
#if HWY_TARGET != HWY_SCALAR
  const D4 d4;
  const hn::Repartition<double, D4> d2;
  const auto factor = hn::Set(d4, scale);
  for (int64_t c = 0; c < whole_columns; c += 4) {
    prefetch_rows(rows, c + 8, std::min(c + 12, columns), width);
    for (int64_t d = 0; d < whole_width; d += 4) {
      const auto a0 = hn::LoadU(d4, rows[c] + d), a1 = hn::LoadU(d4, rows[c + 1] + d);
      const auto a2 = hn::LoadU(d4, rows[c + 2] + d), a3 = hn::LoadU(d4, rows[c + 3] + d);
      const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d4, a0, a1)),
                 low23 = hn::BitCast(d2, hn::InterleaveLower(d4, a2, a3));
      const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d4, a0, a1)),
                 high23 = hn::BitCast(d2, hn::InterleaveUpper(d4, a2, a3));
      float* to = t + d * ld + c;
      hn::StoreU(hn::Mul(factor, hn::BitCast(d4, hn::InterleaveLower(d2, low01, low23))), d4, to);
      hn::StoreU(hn::Mul(factor, hn::BitCast(d4, hn::InterleaveUpper(d2, low01, low23))), d4, to + ld);
      hn::StoreU(hn::Mul(factor, hn::BitCast(d4, hn::InterleaveLower(d2, high01, high23))), d4, to + 2 * ld);
      hn::StoreU(hn::Mul(factor, hn::BitCast(d4, hn::InterleaveUpper(d2, high01, high23))), d4, to + 3 * ld);
    }
  }
#endif
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t d = c < whole_columns ? whole_width : 0; d < width; ++d) t[d * ld + c] = scale * rows[c][d];
  }
}

// rows[c][d] = factors[c] * t[d][c].
void transpose_out(const float* HWY_RESTRICT t, int64_t ld, const float* factors, int64_t columns, int64_t width,
                   float* const* rows) {
  const int64_t whole_columns = hn::MaxLanes(D4()) == 4 ? columns / 4 * 4 : 0, whole_width = width / 4 * 4;
#if HWY_TARGET != HWY_SCALAR
  const D4 d4;
  const hn::Repartition<double, D4> d2;
  for (int64_t c = 0; c < whole_columns; c += 4) {
    const auto factor = hn::LoadU(d4, factors + c);
    prefetch_rows(rows, c + 8, std::min(c + 12, columns), width);
    for (int64_t d = 0; d < whole_width; d += 4) {
      const float* from = t + d * ld + c;
      const auto a0 = hn::Mul(factor, hn::LoadU(d4, from)), a1 = hn::Mul(factor, hn::LoadU(d4, from + ld));
      const auto a2 = hn::Mul(factor, hn::LoadU(d4, from + 2 * ld)), a3 = hn::Mul(factor, hn::LoadU(d4, from + 3 * ld));
      const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d4, a0, a1)),
                 low23 = hn::BitCast(d2, hn::InterleaveLower(d4, a2, a3));
      const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d4, a0, a1)),
                 high23 = hn::BitCast(d2, hn::InterleaveUpper(d4, a2, a3));
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, low01, low23)), d4, rows[c] + d);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, low01, low23)), d4, rows[c + 1] + d);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, high01, high23)), d4, rows[c + 2] + d);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, high01, high23)), d4, rows[c + 3] + d);
    }
  }
#endif
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t d = c < whole_columns ? whole_width : 0; d < width; ++d) rows[c][d] = factors[c] * t[d * ld + c];
  }
}

// Elements [j, c] of a tile with c < from + j * group or c >= to + j * group become `value`.
void mask_rows(float* HWY_RESTRICT s, int64_t ld, int64_t keys, int64_t columns, int64_t from, int64_t to,
               int64_t group, float value) {
  const D16 d;
  const hn::RebindToSigned<D16> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto values = hn::Set(d, value);
  const auto iota = hn::Iota(di, 0);
  const auto bound = [&](int64_t c) { return hn::Set(di, static_cast<int32_t>(std::clamp<int64_t>(c, 0, columns))); };
  for (int64_t j = 0; j < keys; ++j) {
    const auto first = bound(from + j * group), last = hn::Sub(bound(to + j * group), hn::Set(di, 1));
    for (int64_t c = 0; c < columns; c += lanes) {
      const auto at = hn::Add(iota, hn::Set(di, static_cast<int32_t>(c)));
      const auto hidden = hn::Or(hn::Lt(at, first), hn::Lt(last, at));
      float* const x = s + j * ld + c;
      hn::StoreU(hn::IfThenElse(hn::RebindMask(d, hidden), values, hn::LoadU(d, x)), d, x);
    }
  }
}

// Scores of a tile as the options make them: cap > 0: s holds the arguments of tanh; bias: key j of column c at
// bias[c - j * group].
template <bool kCap, bool kBias>
void adjust_tile(float* HWY_RESTRICT s, int64_t ld, int64_t keys, int64_t columns, float cap, const float* bias,
                 int64_t group) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto caps = hn::Set(d, cap);
  for (int64_t j = 0; j < keys; ++j) {
    for (int64_t c = 0; c < columns; c += lanes) {
      auto x = hn::LoadU(d, s + j * ld + c);
      if constexpr (kCap) x = hn::Mul(caps, Tanh(d, x));
      if constexpr (kBias) x = hn::Add(x, hn::LoadU(d, bias + c - j * group));
      hn::StoreU(x, d, s + j * ld + c);
    }
  }
}

void adjust_scores(float* HWY_RESTRICT s, int64_t ld, int64_t keys, int64_t columns, float cap, const float* bias,
                   int64_t group) {
  if (cap > 0 && bias) {
    adjust_tile<true, true>(s, ld, keys, columns, cap, bias, group);
  } else if (cap > 0) {
    adjust_tile<true, false>(s, ld, keys, columns, cap, bias, group);
  } else if (bias) {
    adjust_tile<false, true>(s, ld, keys, columns, cap, bias, group);
  }
}

// One step of the online softmax on S^T[keys, columns]: scores become probabilities relative to the new running
// maximum, and what was summed before is brought to it. A vector of columns goes through all keys twice; its 256 lines
// stay in the first-level cache in between.
void softmax_step(float* HWY_RESTRICT s, int64_t ld, int64_t keys, int64_t columns, float* HWY_RESTRICT maxima,
                  float* HWY_RESTRICT sums, float* HWY_RESTRICT o_t, int64_t width) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < columns; c += lanes) {
    float* column = s + c;
    const auto before = hn::LoadU(d, maxima + c);
    auto max0 = before, max1 = before, max2 = before, max3 = before;
    int64_t j = 0;
    for (; j + 4 <= keys; j += 4) {
      max0 = hn::Max(max0, hn::LoadU(d, column + j * ld));
      max1 = hn::Max(max1, hn::LoadU(d, column + (j + 1) * ld));
      max2 = hn::Max(max2, hn::LoadU(d, column + (j + 2) * ld));
      max3 = hn::Max(max3, hn::LoadU(d, column + (j + 3) * ld));
    }
    for (; j < keys; ++j) max0 = hn::Max(max0, hn::LoadU(d, column + j * ld));
    const auto max = hn::Max(hn::Max(max0, max1), hn::Max(max2, max3));

    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    for (j = 0; j + 2 <= keys; j += 2) {
      const auto p0 = Exp(d, hn::Sub(hn::LoadU(d, column + j * ld), max));
      const auto p1 = Exp(d, hn::Sub(hn::LoadU(d, column + (j + 1) * ld), max));
      hn::StoreU(p0, d, column + j * ld);
      hn::StoreU(p1, d, column + (j + 1) * ld);
      sum0 = hn::Add(sum0, p0);
      sum1 = hn::Add(sum1, p1);
    }
    if (j < keys) {
      const auto p = Exp(d, hn::Sub(hn::LoadU(d, column + j * ld), max));
      hn::StoreU(p, d, column + j * ld);
      sum0 = hn::Add(sum0, p);
    }
    const auto sum = hn::Add(sum0, sum1);
    if (hn::AllTrue(d, hn::Eq(before, max))) {
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), sum), d, sums + c);
      continue;
    }
    const auto correction = Exp(d, hn::Sub(before, max));
    hn::StoreU(max, d, maxima + c);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, sums + c), correction, sum), d, sums + c);
    for (int64_t i = 0; i < width; ++i)
      hn::StoreU(hn::Mul(correction, hn::LoadU(d, o_t + i * ld + c)), d, o_t + i * ld + c);
  }
}

// The same step for one query, its scores in a row of a multiple of 16 keys.
void softmax_row_step(float* HWY_RESTRICT s, int64_t keys, float* max, float* sum, float* HWY_RESTRICT o,
                      int64_t width) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto maxima = hn::Set(d, *max);
  for (int64_t j = 0; j < keys; j += lanes) maxima = hn::Max(maxima, hn::LoadU(d, s + j));
  maxima = hn::MaxOfLanes(d, maxima);
  auto sums = hn::Zero(d);
  for (int64_t j = 0; j < keys; j += lanes) {
    const auto p = Exp(d, hn::Sub(hn::LoadU(d, s + j), maxima));
    hn::StoreU(p, d, s + j);
    sums = hn::Add(sums, p);
  }
  const float before = *max, total = hn::GetLane(hn::SumOfLanes(d, sums));
  *max = hn::GetLane(maxima);
  if (*max == before) {
    *sum += total;
    return;
  }
  const float correction = hn::GetLane(Exp(d, hn::Set(d, before - *max)));
  *sum = *sum * correction + total;
  for (int64_t i = 0; i < width; ++i) o[i] *= correction;
}

// S^T, before cap and bias, becomes P^T = exp(S^T - lse), and dP^T becomes dS^T: the gradient of the scores before the
// cap, or, where `slopes` is given, after it, with the derivative of the cap left in `slopes`.
template <bool kCap, bool kBias>
void gradient_tile(float* HWY_RESTRICT s, float* HWY_RESTRICT dp, int64_t ld, int64_t keys, int64_t columns,
                   const float* HWY_RESTRICT lse, const float* HWY_RESTRICT delta, float cap, const float* bias,
                   int64_t group, float* HWY_RESTRICT slopes) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto caps = hn::Set(d, cap), one = hn::Set(d, 1.0f);
  for (int64_t j = 0; j < keys; ++j) {
    for (int64_t c = 0; c < columns; c += lanes) {
      float *s_at = s + j * ld + c, *dp_at = dp + j * ld + c;
      auto x = hn::LoadU(d, s_at), slope = one;
      if constexpr (kCap) {
        const auto t = Tanh(d, x);
        slope = hn::NegMulAdd(t, t, one);
        x = hn::Mul(caps, t);
      }
      if constexpr (kBias) x = hn::Add(x, hn::LoadU(d, bias + c - j * group));
      const auto p = Exp(d, hn::Sub(x, hn::LoadU(d, lse + c)));
      hn::StoreU(p, d, s_at);
      auto ds = hn::Mul(p, hn::Sub(hn::LoadU(d, dp_at), hn::LoadU(d, delta + c)));
      if constexpr (kCap) {
        if (slopes) {
          hn::StoreU(slope, d, slopes + j * ld + c);
        } else {
          ds = hn::Mul(ds, slope);
        }
      }
      hn::StoreU(ds, d, dp_at);
    }
  }
}

void gradient_step(float* HWY_RESTRICT s, float* HWY_RESTRICT dp, int64_t ld, int64_t keys, int64_t columns,
                   const float* HWY_RESTRICT lse, const float* HWY_RESTRICT delta, float cap, const float* bias,
                   int64_t group, float* HWY_RESTRICT slopes) {
  if (cap > 0 && bias) {
    gradient_tile<true, true>(s, dp, ld, keys, columns, lse, delta, cap, bias, group, slopes);
  } else if (cap > 0) {
    gradient_tile<true, false>(s, dp, ld, keys, columns, lse, delta, cap, bias, group, slopes);
  } else if (bias) {
    gradient_tile<false, true>(s, dp, ld, keys, columns, lse, delta, cap, bias, group, slopes);
  } else {
    gradient_tile<false, false>(s, dp, ld, keys, columns, lse, delta, cap, bias, group, slopes);
  }
}

void multiply_tile(float* HWY_RESTRICT x, const float* HWY_RESTRICT factors, int64_t ld, int64_t rows,
                   int64_t columns) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < rows; ++j) {
    for (int64_t c = 0; c < columns; c += lanes) {
      float* at = x + j * ld + c;
      hn::StoreU(hn::Mul(hn::LoadU(d, at), hn::LoadU(d, factors + j * ld + c)), d, at);
    }
  }
}

// sums[c - j * group] += ds[j, c]; entries outside [low, high) of `sums` do not exist, and what would go there is 0.
// 16 columns on either side of the tile are 0. A vector of sums gathers its diagonal in registers: adding row by row
// would read what the row before has just written, at another alignment.
void add_diagonals(const float* HWY_RESTRICT ds, int64_t ld, int64_t keys, int64_t columns, int64_t group,
                   float* HWY_RESTRICT sums, int64_t low, int64_t high) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), step = ld + group;
  for (int64_t e = -(keys - 1) * group; e < columns; e += lanes) {
    // Keys at which these entries meet the tile: -lanes < e + j * group < columns.
    int64_t j = std::max<int64_t>(0, (group - lanes - e) / group);
    const int64_t stop = std::min(keys, (columns - e + group - 1) / group);
    const float* at = ds + e + j * step;
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
    for (; j + 4 <= stop; j += 4, at += 4 * step) {
      sum0 = hn::Add(sum0, hn::LoadU(d, at));
      sum1 = hn::Add(sum1, hn::LoadU(d, at + step));
      sum2 = hn::Add(sum2, hn::LoadU(d, at + 2 * step));
      sum3 = hn::Add(sum3, hn::LoadU(d, at + 3 * step));
    }
    for (; j < stop; ++j, at += step) sum0 = hn::Add(sum0, hn::LoadU(d, at));
    const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
    if (e >= low && e + lanes <= high) {
      hn::StoreU(hn::Add(hn::LoadU(d, sums + e), sum), d, sums + e);
      continue;
    }
    HWY_ALIGN float single[16];
    hn::StoreU(sum, d, single);
    for (int64_t i = std::max<int64_t>(0, low - e); i < std::min(lanes, high - e); ++i) sums[e + i] += single[i];
  }
}

// dots[c] = a[c] . b[c].
void row_dots(const float* const* a, const float* const* b, int64_t columns, int64_t width, float* dots) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = width / lanes * lanes;
  for (int64_t c = 0; c < columns; ++c) {
    prefetch_rows(a, c + 4, std::min(c + 5, columns), width);
    auto sums = hn::Zero(d);
    for (int64_t i = 0; i < whole; i += lanes) sums = hn::MulAdd(hn::LoadU(d, a[c] + i), hn::LoadU(d, b[c] + i), sums);
    float sum = hn::GetLane(hn::SumOfLanes(d, sums));
    for (int64_t i = whole; i < width; ++i) sum += a[c][i] * b[c][i];
    dots[c] = sum;
  }
}

}  // namespace
}  // namespace transept::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {
namespace {
HWY_EXPORT(transpose_in);
HWY_EXPORT(transpose_out);
HWY_EXPORT(mask_rows);
HWY_EXPORT(adjust_scores);
HWY_EXPORT(softmax_step);
HWY_EXPORT(softmax_row_step);
HWY_EXPORT(gradient_step);
HWY_EXPORT(multiply_tile);
HWY_EXPORT(add_diagonals);
HWY_EXPORT(row_dots);

// Block sizes, measured on one core of a Zen 5 server whose products alone ran at 245 GFLOP/s: GFLOP/s forward and
// backward (the hidden half not counted) for 8 heads of 64 and 1,024 rows, 4 heads of 128 and 2,048 rows, and 6 heads
// of 64 on 2 KV heads and 256 rows. Differences below 5 % are noise: what counts is that smaller borders become slow
// products, larger ones and larger blocks of columns compute more in vain, and larger tiles leave the cache.
//   columns  keys  border      8 x 64, 1024   4 x 128, 2048   6/2 x 64, 256
//     128     128    32          181  189       208  207        150  151
//     128     128    16          169  181       196  196        136  143
//     128      64    32          173  179       199  203        144  156
//     128     256    32          173  185       199  200        139  146
//     192     192    48          174  183       202  203        152  163
//     256     256    64          177  172       192  196        148  145
//
// A short window has few keys that 128 columns all see: nearly all is border. There, 48 columns (a width of the
// library's AVX-512 kernel: products of 48 columns and 288 keys run as fast as 128 x 128, with 32 and 64 they do not)
// take all they see as one block, and the forward pass copies the keys of a run of such blocks. Window of 256 and 512
// at 2,048 tokens, the time of a visible score over that of a full causal row, 8 heads of 64 and of 128, forward:
//   128 columns, borders of 32   +40 +16 %   +31 +12 %
//   48 columns                   +49 +20 %   +41 +15 %
//   48 columns, keys copied      +34 +15 %   +24  +7 %      (runs of 384)
//   48 columns, keys copied      +32 +13 %   +23  +7 %      (runs of 768)
struct Tiling {
  int64_t run;          // columns of one worker's work
  int64_t columns;      // of a block of queries
  int64_t keys;         // of a block that every column sees
  int64_t border_keys;  // of a block that some columns see only in part; 0: not told apart, both in one block
  // Floats between rows of a tile: 128 would map a column of it to few cache sets.
  constexpr int64_t leading() const { return columns + 16; }
};
constexpr int64_t kShortWindow = 1024;
constexpr Tiling kLongTiling{128, 128, 128, 32}, kShortTiling{768, 48, 384, 0};
constexpr int64_t kMostColumns = std::max(kLongTiling.columns, kShortTiling.columns);
Tiling tiling_of(const AttentionShape& shape) {
  return 0 < shape.window && shape.window <= kShortWindow ? kShortTiling : kLongTiling;
}
// Up to this many columns, a row of scores for each is faster than padded tiles. 512 keys of 3 KV heads of 64, us for
// 1, 16, 24, 32 columns: 10, 37, 52, 67 against 48, 47, 65, 65.
constexpr int64_t kFewColumns = 24;
constexpr int64_t kFewKeys = 512;
// Few columns of wide keys (absorbed latents: 576) are work for several workers, and 8 columns at a time run at the
// rate of 16: 82 to 99 and 83 to 87 GFLOP/s on one core.
constexpr int64_t kWideKey = 256, kFewWideColumns = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

int64_t group_of(const AttentionShape& shape) { return shape.heads / shape.kv_heads; }
// On the scores before tanh, which wants them divided by the cap.
float query_factor(const AttentionShape& shape) {
  return shape.softcap > 0 ? shape.scale / shape.softcap : shape.scale;
}

void prefetch_row(const float* row, int64_t width) {
  for (int64_t d = 0; d < width; d += 16) hwy::Prefetch(row + d);
}

// A query at position i sees keys at positions in [i - before, i + after].
struct Sight {
  int64_t before, after;
  explicit Sight(const AttentionShape& shape) {
    constexpr int64_t kFar = int64_t{1} << 40;  // times a group of heads it is still a number of columns
    before = shape.window > 0 ? std::min(shape.window - 1, kFar) : kFar;
    after = shape.causal ? 0 : before;
  }
};

// Whether values are copied for the blocks that share them.
bool packs(const AttentionShape& shape) { return tiling_of(shape).run > tiling_of(shape).columns; }

// A cut of one sequence's columns into runs, and of a run into blocks, depends on its size alone.
struct Blocks {
  int64_t columns, size, count;
  Blocks(int64_t columns_, int64_t most, int64_t unit) : columns(columns_) {
    count = ceil_div(columns, most);
    size = count > 0 ? round_up(ceil_div(columns, count), unit) : unit;
    count = ceil_div(columns, size);
  }
};
Blocks runs_of(const AttentionShape& shape, int64_t rows) {
  const Tiling t = tiling_of(shape);
  const int64_t columns = rows * group_of(shape);
  if (columns <= kFewColumns && shape.head_dim >= kWideKey) return Blocks(columns, kFewWideColumns, kFewWideColumns);
  return Blocks(columns, t.run, packs(shape) ? t.columns : 16);
}

// Columns [first, first + count) of KV head `kv_head` of a sequence.
struct QueryBlock {
  const AttentionShape* shape;
  const AttentionSequence* sequence;
  int64_t kv_head, first, count;
  const float* values = nullptr;  // a copy [rows, value width] of the first chunk's, from row `first_value` on
  int64_t first_value = 0;

  int64_t group() const { return group_of(*shape); }
  int64_t padded() const { return round_up(count, 16); }
  int64_t row(int64_t column) const { return (first + column) / group(); }
  int64_t head(int64_t column) const { return kv_head * group() + (first + column) % group(); }
  // First column whose query is at `position` or later, in [0, count].
  int64_t column_at(int64_t position) const {
    const int64_t rows = std::clamp<int64_t>(position - sequence->first_position, 0, sequence->rows);
    return std::clamp<int64_t>(rows * group() - first, 0, count);
  }
  // Up to `most` columns from `at` on.
  QueryBlock part(int64_t at, int64_t most) const {
    QueryBlock p = *this;
    p.first += at;
    p.count = std::min(most, count - at);
    return p;
  }
  // The place of each column's head in rows of heads of `width` at `stride`.
  template <class T>
  void addresses(T* base, int64_t stride, int64_t width, T** to) const {
    for (int64_t c = 0; c < count; ++c) to[c] = base + row(c) * stride + head(c) * width;
  }
  void prefetch(const float* base, int64_t stride, int64_t width) const {
    for (int64_t c = 0; c < count; ++c) prefetch_row(base + row(c) * stride + head(c) * width, width);
  }
};

// Keys of one chunk that follow each other, and the columns, rounded outwards to 16, that see at least one of them.
struct KeyBlock {
  const float *k, *v;
  int64_t k_stride, v_stride, row, keys, position;
  int64_t begin, end;
  int64_t all_begin, all_end;  // keys, counted from the first, that all columns of the queries see: 0 <= begin <= end

  bool border() const { return all_end - all_begin < keys; }  // some column sees only a part of the keys
};

// Cuts the keys that a block of queries sees into blocks: long ones where every query sees every key, short ones at the
// diagonal and at the ends of the window, so that little is computed in vain.
template <class F>
void for_key_blocks(const QueryBlock& queries, int64_t longest, int64_t longest_border, const F& body) {
  const AttentionSequence& s = *queries.sequence;
  const Sight sight(*queries.shape);
  const int64_t first = s.first_position + queries.row(0), last = s.first_position + queries.row(queries.count - 1);
  for (const KvChunk& chunk : s.keys) {
    const int64_t chunk_end = chunk.first_position + chunk.rows;
    const int64_t begin = std::max(chunk.first_position, first - sight.before),
                  end = std::min(chunk_end, last + sight.after + 1);
    const int64_t all_begin = std::max(begin, last - sight.before);
    int64_t all_end = std::min(end, first + sight.after + 1);
    // A few keys more than whole blocks (with causal blocks of 128 rows it is one) join the border that follows: one
    // more there costs less than blocks of uneven size.
    if (const int64_t rest = std::max<int64_t>(0, all_end - all_begin) % longest;
        rest < longest_border && all_end < end)
      all_end -= rest;
    for (int64_t k = begin; k < end;) {
      const bool outside = k < all_begin || k >= all_end;
      int64_t stop = end, most = longest;
      if (longest_border > 0) {
        if (!outside) stop = all_end;
        if (outside && k < all_begin && all_begin < all_end) stop = all_begin;
        if (outside) most = longest_border;
      }
      const int64_t keys = ceil_div(stop - k, ceil_div(stop - k, most));
      const int64_t seen_begin = std::clamp<int64_t>(all_begin - k, 0, keys),
                    seen_end = std::clamp<int64_t>(all_end - k, seen_begin, keys);
      const int64_t from = queries.column_at(k - sight.after) / 16 * 16,
                    to = round_up(queries.column_at(k + keys + sight.before), 16);
      const int64_t row = k - chunk.first_position;
      const float* const k_row = chunk.k + row * chunk.stride + queries.kv_head * queries.shape->head_dim;
      const int64_t v_width = queries.shape->value_width();
      const float* const v_row = queries.values ? queries.values + (row - queries.first_value) * v_width
                                                : chunk.v + row * chunk.stride + queries.kv_head * v_width;
      if (from < to) {
        body(KeyBlock{k_row, v_row, chunk.stride, queries.values ? v_width : chunk.stride, row, keys, k, from, to,
                      seen_begin, seen_end});
      }
      k += keys;
    }
  }
}

// Elements of hidden pairs become `value`. s: the block's tile, column 0 being block.begin.
void mask_tile(const QueryBlock& queries, const KeyBlock& block, float value, float* s, int64_t ld) {
  const Sight sight(*queries.shape);
  const int64_t group = queries.group(), columns = block.end - block.begin;
  // Key j is seen from column (position + j - after - first_position) * group on, in columns of the whole sequence.
  const int64_t origin = queries.first + block.begin;
  const auto mask = [&](int64_t begin, int64_t end) {
    const int64_t at = block.position + begin - queries.sequence->first_position;
    HWY_DYNAMIC_DISPATCH(mask_rows)
    (s + begin * ld, ld, end - begin, columns, (at - sight.after) * group - origin,
     (at + sight.before + 1) * group - origin, group, value);
  };
  mask(0, block.all_begin);
  mask(block.all_end, block.keys);
}

// Where a KV head's table has the bias of the block's first key and first column.
int64_t bias_origin(const QueryBlock& queries, const KeyBlock& b) {
  return (queries.sequence->first_position - b.position - queries.shape->bias_first) * queries.group() + queries.first +
         b.begin;
}

int64_t bias_table_size(const AttentionShape& shape) { return shape.bias_distances * group_of(shape); }

// Floats of the longest part of a table that a block reads.
int64_t bias_segment_size(const AttentionShape& shape) {
  const Tiling t = tiling_of(shape);
  return shape.bias ? t.keys * group_of(shape) + t.columns : 0;
}

// The bias of a block's first key and first column, with those of all pairs of the block around it. Padding and hidden
// pairs may lie outside the table: then the part that is read is copied to `segment`, with zeros for them.
const float* bias_of(const QueryBlock& queries, const KeyBlock& b, float* segment) {
  const AttentionShape& shape = *queries.shape;
  if (!shape.bias) return nullptr;
  const int64_t size = bias_table_size(shape), origin = bias_origin(queries, b);
  const float* const table = shape.bias + queries.kv_head * size;
  const int64_t low = origin - (b.keys - 1) * queries.group(), high = origin + b.end - b.begin;
  if (low >= 0 && high <= size) return table + origin;
  std::fill_n(segment, high - low, 0.f);
  const int64_t from = std::clamp<int64_t>(0, low, high), to = std::clamp(size, low, high);
  std::copy(table + from, table + std::max(from, to), segment + from - low);
  return segment + origin - low;
}

void zero_padding(float* t, int64_t ld, int64_t rows, const QueryBlock& queries) {
  for (int64_t d = 0; d < rows; ++d) std::fill(t + d * ld + queries.count, t + d * ld + queries.padded(), 0.f);
}

// Before any key: nothing, or the sink. A sink of -inf is as good as the lowest float.
void start_rows(const QueryBlock& queries, float* maxima, float* sums) {
  const float lowest = std::numeric_limits<float>::lowest();
  const float* const sinks = queries.shape->sinks;
  for (int64_t c = 0; c < queries.count; ++c) {
    maxima[c] = sinks ? std::max(sinks[queries.head(c)], lowest) : lowest;
    sums[c] = sinks ? 1.f : 0.f;
  }
}

// Turns sums of exponentials into factors of the output, and stores lse.
void finish_rows(const QueryBlock& queries, const float* maxima, float* sums) {
  for (int64_t c = 0; c < queries.count; ++c) {
    const float sum = sums[c];
    if (queries.sequence->lse) {
      queries.sequence->lse[queries.row(c) * queries.shape->heads + queries.head(c)] =
          sum > 0 ? maxima[c] + std::log(sum) : -kInfinity;
    }
    sums[c] = sum > 0 ? 1 / sum : 0;
  }
}

// A sum [rows, columns] over blocks of keys that is not set to zero where its first block covers all columns.
class FirstSum {
 public:
  FirstSum(float* sum, int64_t ld, int64_t rows, int64_t columns)
      : sum_(sum), ld_(ld), rows_(rows), columns_(columns) {}

  // The factor of what is there, for the product that adds the block; 0: nothing is, and the block overwrites it.
  float beta(const KeyBlock& b) {
    const bool overwrites = !started_ && b.begin == 0 && b.end == columns_;
    if (!overwrites) finish();
    started_ = true;
    return overwrites ? 0.f : 1.f;
  }
  // Zeros if no block came.
  void finish() {
    for (int64_t r = 0; !started_ && r < rows_; ++r) std::fill_n(sum_ + r * ld_, columns_, 0.f);
    started_ = true;
  }

 private:
  float* sum_;
  int64_t ld_, rows_, columns_;
  bool started_ = false;
};

void forward_block(const QueryBlock& queries, float* workspace) {
  const AttentionSequence& sequence = *queries.sequence;
  const Tiling tiling = tiling_of(*queries.shape);
  const int64_t width = queries.shape->head_dim, value_width = queries.shape->value_width();
  const int64_t padded = queries.padded(), ld = tiling.leading();
  float* const q_t = workspace;             // [width, columns]
  float* const o_t = q_t + width * ld;      // [value_width, columns]
  float* const s = o_t + value_width * ld;  // [keys, columns]
  float* const maxima = s + tiling.keys * ld;
  float* const sums = maxima + ld;
  float* const segment = sums + ld;  // bias_segment_size

  std::array<const float*, kMostColumns> q_rows;
  queries.addresses(sequence.q, sequence.q_stride, width, q_rows.data());
  HWY_DYNAMIC_DISPATCH(transpose_in)(q_rows.data(), queries.count, width, query_factor(*queries.shape), q_t, ld);
  zero_padding(q_t, ld, width, queries);
  FirstSum o_sum(o_t, ld, value_width, padded);
  start_rows(queries, maxima, sums);
  std::fill(maxima + queries.count, maxima + padded, 0.f);
  std::fill(sums + queries.count, sums + padded, 0.f);

  for_key_blocks(queries, tiling.keys, tiling.border_keys, [&](const KeyBlock& b) {
    const int64_t columns = b.end - b.begin;
    gemm_tile(Transpose::kNo, Transpose::kNo, b.keys, columns, width, 1, b.k, b.k_stride, q_t + b.begin, ld, 0, s, ld);
    HWY_DYNAMIC_DISPATCH(adjust_scores)
    (s, ld, b.keys, columns, queries.shape->softcap, bias_of(queries, b, segment), queries.group());
    if (b.border()) mask_tile(queries, b, -kInfinity, s, ld);
    const float beta = o_sum.beta(b);
    HWY_DYNAMIC_DISPATCH(softmax_step)
    (s, ld, b.keys, columns, maxima + b.begin, sums + b.begin, o_t + b.begin, beta == 0 ? 0 : value_width);
    gemm_tile(Transpose::kYes, Transpose::kNo, value_width, columns, b.keys, 1, b.v, b.v_stride, s, ld, beta,
              o_t + b.begin, ld);
  });
  o_sum.finish();

  finish_rows(queries, maxima, sums);
  std::array<float*, kMostColumns> out_rows;
  queries.addresses(sequence.out, sequence.out_stride, value_width, out_rows.data());
  HWY_DYNAMIC_DISPATCH(transpose_out)(o_t, ld, sums, queries.count, value_width, out_rows.data());
}

// Few columns (decoding): a row of scores a query, and products that are matrix by vector, or nearly.
void forward_few(const QueryBlock& queries, float* workspace) {
  const AttentionSequence& sequence = *queries.sequence;
  const AttentionShape& shape = *queries.shape;
  const int64_t width = shape.head_dim, value_width = shape.value_width();
  const int64_t count = queries.count, group = queries.group();
  const Sight sight(shape);
  const float factor = query_factor(shape);
  float* const q = workspace;                      // [columns, width]
  float* const o = q + kFewColumns * width;        // [columns, value_width]
  float* const s = o + kFewColumns * value_width;  // [columns, keys]
  std::array<float, kFewColumns> maxima, sums;
  start_rows(queries, maxima.data(), sums.data());

  std::array<const float*, kFewColumns> q_rows;
  queries.addresses(sequence.q, sequence.q_stride, width, q_rows.data());
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t d = 0; d < width; ++d) q[c * width + d] = factor * q_rows[c][d];
  }
  std::fill_n(o, count * value_width, 0.f);

  for_key_blocks(queries, kFewKeys, kFewKeys, [&](const KeyBlock& b) {
    const int64_t ld = round_up(b.keys, 16);
    gemm_tile(Transpose::kNo, Transpose::kYes, count, b.keys, width, 1, q, width, b.k, b.k_stride, 0, s, ld);
    for (int64_t c = 0; c < count; ++c) {
      float* const row = s + c * ld;
      const int64_t position = sequence.first_position + queries.row(c);
      const int64_t to = std::clamp<int64_t>(position + sight.after + 1 - b.position, 0, b.keys),
                    from = std::clamp<int64_t>(position - sight.before - b.position, 0, to);
      HWY_DYNAMIC_DISPATCH(adjust_scores)(row, ld, 1, ld, shape.softcap, nullptr, group);
      if (shape.bias) {
        const float* const table = shape.bias + queries.kv_head * bias_table_size(shape);
        const int64_t first = (position - b.position - shape.bias_first) * group + (queries.first + c) % group;
        for (int64_t j = from; j < to; ++j) row[j] += table[first - j * group];
      }
      std::fill(row, row + from, -kInfinity);
      std::fill(row + to, row + ld, -kInfinity);
      HWY_DYNAMIC_DISPATCH(softmax_row_step)(row, ld, &maxima[c], &sums[c], o + c * value_width, value_width);
    }
    gemm_tile(Transpose::kNo, Transpose::kNo, count, value_width, b.keys, 1, s, ld, b.v, b.v_stride, 1, o, value_width);
  });

  finish_rows(queries, maxima.data(), sums.data());
  std::array<float*, kFewColumns> out_rows;
  queries.addresses(sequence.out, sequence.out_stride, value_width, out_rows.data());
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t d = 0; d < value_width; ++d) out_rows[c][d] = sums[c] * o[c * value_width + d];
  }
}

int64_t block_workspace(const AttentionShape& shape) {
  const Tiling t = tiling_of(shape);
  return (shape.head_dim + shape.value_width() + t.keys + 2) * t.leading() + bias_segment_size(shape);
}

// Floats of the values that a run of queries sees.
int64_t copied_size(const AttentionShape& shape) {
  if (!packs(shape)) return 0;
  const int64_t rows = (shape.causal ? 1 : 2) * shape.window + ceil_div(tiling_of(shape).run, group_of(shape)) + 1;
  return rows * shape.value_width();
}

// Makes `run` read its values from `copy`, copied_size floats.
void copy_values(QueryBlock& run, float* copy) {
  constexpr int64_t kAhead = 16;
  const KvChunk& chunk = run.sequence->keys[0];
  const Sight sight(*run.shape);
  const int64_t width = run.shape->value_width(), origin = run.sequence->first_position - chunk.first_position;
  const int64_t begin = std::clamp<int64_t>(origin + run.row(0) - sight.before, 0, chunk.rows),
                end = std::clamp<int64_t>(origin + run.row(run.count - 1) + sight.after + 1, begin, chunk.rows);
  for (int64_t r = begin; r < end; ++r) {
    const float* const v = chunk.v + r * chunk.stride + run.kv_head * width;
    if (r + kAhead < end) prefetch_row(v + kAhead * chunk.stride, width);
    std::copy_n(v, width, copy + (r - begin) * width);
  }
  run.values = copy;
  run.first_value = begin;
}

// Blocks of a short window read the same keys and values again and again. Rows that are a power of two apart throw each
// other out of the cache, and half of them out of the way is enough: for the keys too, the copy costs more than it
// brings. Rows of a block's queries are fetched while the block before is at work.
void forward_run(QueryBlock run, float* workspace) {
  const AttentionShape& shape = *run.shape;
  const AttentionSequence& s = *run.sequence;
  if (packs(shape) && s.keys.size() == 1) copy_values(run, workspace + block_workspace(shape));
  const Blocks blocks(run.count, tiling_of(shape).columns, 16);
  for (int64_t at = 0; at < run.count; at += blocks.size) {
    const QueryBlock block = run.part(at, blocks.size), next = run.part(at + block.count, blocks.size);
    next.prefetch(s.q, s.q_stride, shape.head_dim);
    block.prefetch(s.out, s.out_stride, shape.value_width());
    forward_block(block, workspace);
  }
}

// Where bias and cap both are, the bias wants dS before the cap's derivative and the products want it after.
int64_t slopes_size(const AttentionShape& shape) {
  const Tiling t = tiling_of(shape);
  return shape.bias && shape.softcap > 0 ? t.keys * t.leading() : 0;
}

// All columns of one KV head of one sequence, so that dK, dV and the gradient of the bias have one writer.
void backward_unit(const AttentionShape& shape, const AttentionGradient& gradient, int64_t kv_head, float* workspace) {
  const AttentionSequence& sequence = gradient.forward;
  const KvChunk& chunk = sequence.keys[0];
  const Tiling tiling = tiling_of(shape);
  const int64_t width = shape.head_dim, value_width = shape.value_width();
  const int64_t group = group_of(shape), ld = tiling.leading();
  float* const q_t = workspace;                           // [width, columns], scaled
  float* const do_t = q_t + width * ld;                   // [value_width, columns]
  float* const dq_t = do_t + value_width * ld;            // [width, columns], without the scale
  float* const q = dq_t + width * ld;                     // [columns, width]
  float* const d_out = q + tiling.columns * width;        // [columns, value_width]
  float* const s = d_out + tiling.columns * value_width;  // [keys, columns]
  float* const dp = s + tiling.keys * ld + 16;            // [keys, columns], with zeros on all sides for add_diagonals
  float* const lse = dp + tiling.keys * ld;
  float* const delta = lse + ld;
  float* const scales = delta + ld;
  float* const segment = scales + ld;                             // bias_segment_size
  float* const slopes_tile = segment + bias_segment_size(shape);  // [keys, columns], slopes_size
  float* const dk = slopes_tile + slopes_size(shape);             // [rows, width], without the scale
  float* const dv = dk + chunk.rows * width;                      // [rows, value_width]
  float* const d_bias = gradient.d_bias ? gradient.d_bias + kv_head * bias_table_size(shape) : nullptr;
  float* const slopes = d_bias && shape.softcap > 0 ? slopes_tile : nullptr;
  if (d_bias) {
    std::fill_n(d_bias, bias_table_size(shape), 0.f);
    std::fill_n(dp - 16, 16 + tiling.keys * ld, 0.f);
  }
  if (gradient.d_sinks) std::fill_n(gradient.d_sinks + kv_head * group, group, 0.f);
  std::fill_n(dk, chunk.rows * (width + value_width), 0.f);
  std::fill_n(scales, tiling.columns, shape.scale);

  const QueryBlock all{&shape, &sequence, kv_head, 0, sequence.rows * group};
  const Blocks blocks(all.count, tiling.columns, 16);
  for (int64_t at = 0; at < all.count; at += blocks.size) {
    const QueryBlock queries = all.part(at, blocks.size);
    const QueryBlock next = all.part(at + queries.count, blocks.size);
    next.prefetch(sequence.q, sequence.q_stride, width);
    next.prefetch(sequence.out, sequence.out_stride, value_width);
    next.prefetch(gradient.d_out, sequence.out_stride, value_width);
    queries.prefetch(gradient.dq, sequence.q_stride, width);
    const int64_t count = queries.count, padded = queries.padded();
    std::array<const float*, kMostColumns> q_rows, out_rows, do_rows;
    std::array<float*, kMostColumns> dq_rows;
    queries.addresses(sequence.q, sequence.q_stride, width, q_rows.data());
    queries.addresses<const float>(sequence.out, sequence.out_stride, value_width, out_rows.data());
    queries.addresses(gradient.d_out, sequence.out_stride, value_width, do_rows.data());
    queries.addresses(gradient.dq, sequence.q_stride, width, dq_rows.data());
    HWY_DYNAMIC_DISPATCH(transpose_in)(q_rows.data(), count, width, query_factor(shape), q_t, ld);
    HWY_DYNAMIC_DISPATCH(transpose_in)(do_rows.data(), count, value_width, 1, do_t, ld);
    HWY_DYNAMIC_DISPATCH(row_dots)(out_rows.data(), do_rows.data(), count, value_width, delta);
    zero_padding(q_t, ld, width, queries);
    zero_padding(do_t, ld, value_width, queries);
    for (int64_t c = 0; c < count; ++c) {
      std::copy_n(q_rows[c], width, q + c * width);
      std::copy_n(do_rows[c], value_width, d_out + c * value_width);
      const float value = sequence.lse[queries.row(c) * shape.heads + queries.head(c)];
      lse[c] = value == -kInfinity ? kInfinity : value;  // no key seen: exp(s - inf) = 0 everywhere
      if (gradient.d_sinks) {
        const int64_t head = queries.head(c);
        gradient.d_sinks[head] -= std::exp(shape.sinks[head] - lse[c]) * delta[c];
      }
    }
    std::fill(q + count * width, q + padded * width, 0.f);
    std::fill(d_out + count * value_width, d_out + padded * value_width, 0.f);
    std::fill(lse + count, lse + padded, kInfinity);
    std::fill(delta + count, delta + padded, 0.f);
    FirstSum dq_sum(dq_t, ld, width, padded);

    for_key_blocks(queries, tiling.keys, tiling.border_keys, [&](const KeyBlock& b) {
      const int64_t columns = b.end - b.begin;
      gemm_tile(Transpose::kNo, Transpose::kNo, b.keys, columns, width, 1, b.k, b.k_stride, q_t + b.begin, ld, 0, s,
                ld);
      gemm_tile(Transpose::kNo, Transpose::kNo, b.keys, columns, value_width, 1, b.v, b.v_stride, do_t + b.begin, ld, 0,
                dp, ld);
      HWY_DYNAMIC_DISPATCH(gradient_step)
      (s, dp, ld, b.keys, columns, lse + b.begin, delta + b.begin, shape.softcap, bias_of(queries, b, segment), group,
       slopes);
      if (b.border()) {
        mask_tile(queries, b, 0, s, ld);
        mask_tile(queries, b, 0, dp, ld);
      }
      if (d_bias) {
        for (int64_t j = 0; j < b.keys; ++j) std::fill_n(dp + j * ld + columns, 16, 0.f);
        const int64_t origin = bias_origin(queries, b);
        HWY_DYNAMIC_DISPATCH(add_diagonals)
        (dp, ld, b.keys, columns, group, d_bias + origin, -origin, bias_table_size(shape) - origin);
      }
      if (slopes) HWY_DYNAMIC_DISPATCH(multiply_tile)(dp, slopes, ld, b.keys, columns);
      gemm_tile(Transpose::kNo, Transpose::kNo, b.keys, value_width, columns, 1, s, ld, d_out + b.begin * value_width,
                value_width, 1, dv + b.row * value_width, value_width);
      gemm_tile(Transpose::kNo, Transpose::kNo, b.keys, width, columns, 1, dp, ld, q + b.begin * width, width, 1,
                dk + b.row * width, width);
      gemm_tile(Transpose::kYes, Transpose::kNo, width, columns, b.keys, 1, b.k, b.k_stride, dp, ld, dq_sum.beta(b),
                dq_t + b.begin, ld);
    });
    dq_sum.finish();
    HWY_DYNAMIC_DISPATCH(transpose_out)(dq_t, ld, scales, count, width, dq_rows.data());
  }
  constexpr int64_t kAhead = 16;
  for (int64_t r = 0; r < chunk.rows; ++r) {
    if (r + kAhead < chunk.rows) {
      prefetch_row(gradient.dk + (r + kAhead) * chunk.stride + kv_head * width, width);
      prefetch_row(gradient.dv + (r + kAhead) * chunk.stride + kv_head * value_width, value_width);
    }
    float* const dk_row = gradient.dk + r * chunk.stride + kv_head * width;
    for (int64_t d = 0; d < width; ++d) dk_row[d] = shape.scale * dk[r * width + d];
    std::copy_n(dv + r * value_width, value_width, gradient.dv + r * chunk.stride + kv_head * value_width);
  }
}

void check_shape(const AttentionShape& shape) {
  TRANSEPT_CHECK(shape.kv_heads >= 1 && shape.heads % shape.kv_heads == 0 && shape.head_dim >= 1);
  TRANSEPT_CHECK(shape.value_dim >= 0 && shape.window >= 0 && shape.softcap >= 0 &&
                 (!shape.bias || shape.bias_distances >= 1));
}

}  // namespace

constexpr bool fits_few(const Tiling& t) {
  return kFewColumns * kFewKeys <= t.keys * t.leading() && kFewColumns <= t.leading();
}
static_assert(fits_few(kLongTiling) && fits_few(kShortTiling), "forward_few fits in the workspace of tiles");

int64_t attention_forward_workspace(const AttentionShape& shape) { return block_workspace(shape) + copied_size(shape); }

int64_t attention_backward_workspace(const AttentionShape& shape, int64_t most_keys) {
  const Tiling t = tiling_of(shape);
  return (2 * t.leading() + t.columns + most_keys) * shape.head_dim +
         (t.leading() + t.columns + most_keys) * shape.value_width() + (2 * t.keys + 3) * t.leading() + 16 +
         bias_segment_size(shape) + slopes_size(shape);
}

int64_t attention_computed_scores(const AttentionShape& shape, const AttentionSequence& sequence) {
  check_shape(shape);
  const Tiling tiling = tiling_of(shape);
  const Blocks runs = runs_of(shape, sequence.rows);
  int64_t scores = 0;
  for (int64_t first = 0; first < runs.columns; first += runs.size) {
    const QueryBlock run{&shape, &sequence, 0, first, std::min(runs.size, runs.columns - first)};
    if (run.count <= kFewColumns) {
      for_key_blocks(run, kFewKeys, kFewKeys, [&](const KeyBlock& b) { scores += run.count * b.keys; });
      continue;
    }
    const Blocks blocks(run.count, tiling.columns, 16);
    for (int64_t at = 0; at < run.count; at += blocks.size) {
      for_key_blocks(run.part(at, blocks.size), tiling.keys, tiling.border_keys,
                     [&](const KeyBlock& b) { scores += (b.end - b.begin) * b.keys; });
    }
  }
  return scores * shape.kv_heads;
}

void attention_forward(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionSequence> batch,
                       float* workspace) {
  check_shape(shape);
  const int64_t per_worker = attention_forward_workspace(shape);
  int64_t units = 0;
  for (const AttentionSequence& s : batch) units += shape.kv_heads * runs_of(shape, s.rows).count;
  pool.run(units, [&](int64_t unit, int worker) {
    const AttentionSequence* s = batch.data();
    for (int64_t n; unit >= (n = shape.kv_heads * runs_of(shape, s->rows).count); ++s) unit -= n;
    const Blocks runs = runs_of(shape, s->rows);
    // Late runs see the most keys: first, so that no worker is left with a long one at the end.
    const int64_t first = (runs.count - 1 - unit / shape.kv_heads) * runs.size, kv_head = unit % shape.kv_heads;
    const QueryBlock run{&shape, s, kv_head, first, std::min(runs.size, runs.columns - first)};
    float* const scratch = workspace + worker * per_worker;
    if (run.count <= kFewColumns) {
      forward_few(run, scratch);
    } else {
      forward_run(run, scratch);
    }
  });
}

void attention_backward(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionGradient> batch,
                        float* workspace) {
  check_shape(shape);
  int64_t most_keys = 0;
  for (const AttentionGradient& g : batch) {
    TRANSEPT_CHECK(g.forward.keys.size() == 1 && (g.forward.lse || g.forward.rows == 0));
    TRANSEPT_CHECK((!g.d_bias || shape.bias) && (!g.d_sinks || shape.sinks));
    most_keys = std::max(most_keys, g.forward.keys[0].rows);
  }
  const int64_t per_worker = attention_backward_workspace(shape, most_keys);
  pool.run(static_cast<int64_t>(batch.size()) * shape.kv_heads, [&](int64_t unit, int worker) {
    const AttentionGradient& g = batch[static_cast<size_t>(unit / shape.kv_heads)];
    backward_unit(shape, g, unit % shape.kv_heads, workspace + worker * per_worker);
  });
}

}  // namespace transept
#endif  // HWY_ONCE
