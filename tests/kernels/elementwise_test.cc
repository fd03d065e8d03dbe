#include "kernels/elementwise.h"

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/elementwise_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class ElementwiseSweep : public ::testing::TestWithParam<RowsShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, ElementwiseSweep, ::testing::ValuesIn(kRowsShapes));

// One rounding an element: the same bits as the scalar operation.
TEST_P(ElementwiseSweep, SumsAndProductsAreExact) {
  const RowsShape shape = GetParam();
  const std::vector<float> a = random_floats(shape.rows * shape.width, 1),
                           b = random_floats(shape.rows * shape.width, 2), bias = random_floats(shape.width, 3);
  std::vector<float> sum = a, biased = a, scaled = a, columns = bias;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t column = i % static_cast<size_t>(shape.width);
    sum[i] += b[i];
    biased[i] += bias[column];
    scaled[i] *= 0.3f;
    columns[column] += a[i];
  }
  for_each_instruction_set([&] {
    GuardedRows x(shape, b), y(shape, a);
    add_rows(x.view(), y.view());
    EXPECT_EQ(y.values(), sum);
    y.set(a);
    add_bias(bias.data(), y.view());
    EXPECT_EQ(y.values(), biased);
    y.set(a);
    scale_rows(0.3f, y.view());
    EXPECT_EQ(y.values(), scaled);
    copy_rows(x.view(), y.view());
    EXPECT_EQ(y.values(), b);
    y.set(a);
    copy_rows(y.view(), y.view());
    EXPECT_EQ(y.values(), a);
    GuardedRows sums({1, shape.width, 0, shape.misaligned}, bias);
    sum_columns(y.view(), sums.view().data);
    EXPECT_EQ(sums.values(), columns);
    EXPECT_TRUE(x.guard_intact() && y.guard_intact() && sums.guard_intact());
  });
}

// Of NaN too.
std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> all;
  for (const float v : values) all.push_back(std::bit_cast<uint32_t>(v));
  return all;
}

TEST_P(ElementwiseSweep, ClampsAndMasksWhatWasBeyond) {
  const RowsShape shape = GetParam();
  std::vector<float> values = random_floats(shape.rows * shape.width, 1);
  if (!values.empty()) values[0] = std::numeric_limits<float>::quiet_NaN();
  constexpr float kBound = 0.4f;
  std::vector<float> held = values, masked(values.size());
  std::vector<uint8_t> expected(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    expected[i] = std::abs(values[i]) <= kBound;
    held[i] = std::clamp(values[i], -kBound, kBound);
    masked[i] = expected[i] ? 1.0f : 0.0f;
  }
  for_each_instruction_set([&] {
    GuardedRows y(shape, values), g(shape, std::vector<float>(values.size(), 1));
    std::vector<uint8_t> inside(values.size());
    clamp_rows(kBound, y.view(), inside.data());
    EXPECT_EQ(bits(y.values()), bits(held));
    EXPECT_EQ(inside, expected);
    y.set(values);
    clamp_rows(kBound, y.view(), nullptr);
    EXPECT_EQ(bits(y.values()), bits(held));
    mask_rows(inside.data(), g.view());
    EXPECT_EQ(g.values(), masked);
    EXPECT_TRUE(y.guard_intact() && g.guard_intact());
  });
}

TEST_P(ElementwiseSweep, DropoutIsItsDefinition) {
  const RowsShape shape = GetParam();
  const std::vector<float> values = random_floats(shape.rows * shape.width, 1);
  // The first counter is taken at every place within a block of four, and across the carry into the counter's high
  // word.
  for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{7}, (uint64_t{1} << 34) - 6}) {
    for (const float p : {0.f, 0.1f, 0.5f, 0.999f}) {
      const DropoutMask mask{0x123456789abcdef0, 0xfedcba9876543210, first, shape.width + 5, p};
      const int64_t row = 3, column = 2;
      std::vector<float> expected = values;
      for (size_t i = 0; i < expected.size(); ++i) {
        const int64_t r = static_cast<int64_t>(i) / shape.width, c = static_cast<int64_t>(i) % shape.width;
        expected[i] = ref::dropout_factor(mask, row + r, column + c) == 0 ? 0.f : values[i] / (1.f - p);
      }
      for_each_instruction_set([&] {
        GuardedRows y(shape, values);
        dropout_rows(mask, row, column, y.view());
        EXPECT_EQ(y.values(), expected);
        EXPECT_TRUE(y.guard_intact());
      });
    }
  }
}

TEST(Dropout, ATileHasTheMaskOfItsPlace) {
  const std::vector<float> ones(40 * 60, 1.f);
  const DropoutMask mask{1, 2, 3, 60, 0.3f};
  GuardedRows whole({40, 60, 0, 0}, ones), tiled({40, 60, 0, 0}, ones);
  dropout_rows(mask, 0, 0, whole.view());
  for (int64_t r = 0; r < 40; r += 13) {
    for (int64_t c = 0; c < 60; c += 17) {
      const Rows v = tiled.view();
      dropout_rows(mask, r, c, {v.row(r) + c, std::min<int64_t>(13, 40 - r), std::min<int64_t>(17, 60 - c), v.stride});
    }
  }
  EXPECT_EQ(whole.values(), tiled.values());
}

TEST(Dropout, TheShareIsRightAndTheMeanStays) {
  const int64_t n = 200000;
  for (const float p : {0.05f, 0.3f, 0.9f}) {
    std::vector<float> x(static_cast<size_t>(n), 1.f);
    dropout_rows({42, 7, 0, n, p}, 0, 0, {x.data(), 1, n, n});
    double gone = 0, mean = 0;
    for (const float v : x) {
      gone += v == 0 ? 1.0 / n : 0;
      mean += static_cast<double>(v) / n;
    }
    // Five standard deviations of a binomial share.
    const double deviation = std::sqrt(static_cast<double>(p) * (1 - static_cast<double>(p)) / n);
    EXPECT_NEAR(gone, static_cast<double>(p), 5 * deviation);
    EXPECT_NEAR(mean, 1, 5 * deviation / (1 - static_cast<double>(p)));
  }
}

TEST(Dropout, EverythingGoesAtOneAndANaNCanGo) {
  for_each_instruction_set([] {
    GuardedRows all({2, 17, 1, 1});  // all NaN
    dropout_rows({1, 1, 0, 17, 1.f}, 0, 0, all.view());
    EXPECT_EQ(all.values(), std::vector<float>(34, 0.f));
    EXPECT_TRUE(all.guard_intact());
  });
}

TEST(SumOfSquares, KeepsDoublesDigits) {
  for (const int64_t n : {0, 1, 2, 7, 8, 9, 31, 64, 127, 1000, 100003}) {
    const std::vector<float> x = random_floats(n, 1, 3);
    double expected = 0;
    for (const float v : x) expected += static_cast<double>(v) * static_cast<double>(v);
    for_each_instruction_set([&] {
      GuardedRows guarded({1, n, 0, 1}, x);
      EXPECT_NEAR(sum_of_squares(guarded.view().data, n), expected, tolerance::kDoubleSum * expected);
    });
  }
  // Squares beyond float's range.
  const std::vector<float> large(5, 1e30f);
  for_each_instruction_set([&] { EXPECT_NEAR(sum_of_squares(large.data(), 5), 5e60, tolerance::kKernel * 5e60); });
}

TEST(AllFinite, FindsOneBadValueAnywhere) {
  for_each_instruction_set([] {
    for (const int64_t n : {0, 1, 7, 16, 17, 64, 127}) {
      std::vector<float> x = random_floats(n, 1);
      if (n > 3) x[3] = std::numeric_limits<float>::max();
      EXPECT_TRUE(all_finite(x.data(), n));
      for (size_t at = 0; at < x.size(); ++at) {
        for (const float bad :
             {kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
          std::vector<float> y = x;
          y[at] = bad;
          EXPECT_FALSE(all_finite(y.data(), n)) << n << " " << at;
        }
      }
    }
  });
}

struct Conversion {
  const char* name;
  ref::HalfFormat format;
  void (*widen)(const uint16_t* x, int64_t n, float* y);
  void (*narrow)(const float* x, int64_t n, uint16_t* y);
};
constexpr Conversion kConversions[] = {
    {"f16", ref::kF16, f32_from_f16, f16_from_f32},
    {"bf16", ref::kBF16, f32_from_bf16, bf16_from_f32},
};

bool is_nan(ref::HalfFormat format, uint16_t bits) { return std::isnan(ref::value_of(format, bits)); }

TEST(HalfFormats, EveryPatternWidensExactlyAndReturns) {
  std::vector<uint16_t> patterns(65536);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  for (const Conversion& c : kConversions) {
    for_each_instruction_set([&] {
      std::vector<float> wide(patterns.size());
      std::vector<uint16_t> back(patterns.size());
      c.widen(patterns.data(), 65536, wide.data());
      c.narrow(wide.data(), 65536, back.data());
      int wrong = 0;
      for (size_t i = 0; i < patterns.size(); ++i) {
        const double exact = ref::value_of(c.format, patterns[i]);
        const bool right = std::isnan(exact) ? std::isnan(wide[i]) && is_nan(c.format, back[i]) &&
                                                   (back[i] >> 15) == (patterns[i] >> 15)
                                             : static_cast<double>(wide[i]) == exact && back[i] == patterns[i] &&
                                                   std::signbit(wide[i]) == (patterns[i] >> 15 != 0);
        if (!right && ++wrong <= 3)
          ADD_FAILURE() << c.name << " pattern " << i << ": " << wide[i] << ", back as " << back[i];
      }
      EXPECT_EQ(wrong, 0);
    });
  }
}

// Around every representable value and every midpoint of two: the value, and the floats next to it.
TEST(HalfFormats, NarrowingRoundsToNearestEven) {
  for (const Conversion& c : kConversions) {
    std::vector<float> x;
    for (int i = 0; i < 0x7fff; ++i) {
      const double here = ref::value_of(c.format, static_cast<uint16_t>(i)),
                   next = ref::value_of(c.format, static_cast<uint16_t>(i + 1));
      if (!std::isfinite(here) || !std::isfinite(next)) continue;
      const float middle = static_cast<float>((here + next) / 2);
      for (const float v : {static_cast<float>(here), middle}) {
        for (const float near : {v, std::nextafter(v, kInf), std::nextafter(v, -kInf)}) {
          x.push_back(near);
          x.push_back(-near);
        }
      }
    }
    for (const float v :
         {65504.f, 65519.f, 65519.996f, 65520.f, 65536.f, 1e6f, 3.3e38f, 3.395e38f, 3.4e38f,
          std::numeric_limits<float>::max(), kInf, std::numeric_limits<float>::denorm_min(), 1e-40f, 2.9e-8f, 3e-8f}) {
      x.push_back(v);
      x.push_back(-v);
    }
    for (const float v : random_floats(10007, 1, 100)) x.push_back(v);
    std::vector<uint16_t> expected;
    for (const float v : x) expected.push_back(ref::nearest(c.format, static_cast<double>(v)));
    for_each_instruction_set([&] {
      std::vector<uint16_t> y(x.size());
      c.narrow(x.data(), static_cast<int64_t>(x.size()), y.data());
      int wrong = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (y[i] != expected[i] && ++wrong <= 3)
          ADD_FAILURE() << c.name << " of " << x[i] << ": " << y[i] << " instead of " << expected[i];
      }
      EXPECT_EQ(wrong, 0);
    });
  }
}

TEST(HalfFormats, NoNaNBecomesInfinity) {
  // Payloads whose set bits all lie below what 16 bits keep.
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7f801fffu, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    const float x[1] = {std::bit_cast<float>(bits)};
    for (const Conversion& c : kConversions) {
      for_each_instruction_set([&] {
        uint16_t y[1] = {};
        c.narrow(x, 1, y);
        EXPECT_TRUE(is_nan(c.format, y[0])) << c.name << " " << bits;
        EXPECT_EQ(y[0] >> 15, static_cast<int>(bits >> 31));
      });
    }
  }
}

TEST(HalfFormats, NothingOutsideIsWritten) {
  for_each_instruction_set([] {
    for (const Conversion& c : kConversions) {
      for (size_t n = 0; n < 70; ++n) {
        std::vector<uint16_t> narrow(n + 2, 0xabcd);
        const std::vector<float> ones(n, 1.f);
        c.narrow(ones.data(), static_cast<int64_t>(n), narrow.data() + 1);
        EXPECT_EQ(narrow.front(), 0xabcd);
        EXPECT_EQ(narrow.back(), 0xabcd);
        GuardedRows wide({1, static_cast<int64_t>(n), 0, 1});
        c.widen(narrow.data() + 1, static_cast<int64_t>(n), wide.view().data);
        EXPECT_EQ(wide.values(), ones);
        EXPECT_TRUE(wide.guard_intact());
      }
    }
  });
}

TEST(HalfFormatsReference, KnownPatterns) {
  EXPECT_EQ(ref::nearest(ref::kF16, 1), 0x3c00);
  EXPECT_EQ(ref::nearest(ref::kF16, -2), 0xc000);
  EXPECT_EQ(ref::nearest(ref::kF16, 65504), 0x7bff);
  EXPECT_EQ(ref::nearest(ref::kF16, 65520), 0x7c00);
  EXPECT_EQ(ref::nearest(ref::kF16, 0x1p-24), 0x0001);
  EXPECT_EQ(ref::nearest(ref::kF16, 0x1p-25), 0x0000);
  EXPECT_EQ(ref::nearest(ref::kBF16, 1), 0x3f80);
  EXPECT_EQ(ref::nearest(ref::kBF16, 1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(ref::nearest(ref::kBF16, 1 + 0x3p-8), 0x3f82);
}

}  // namespace
}  // namespace transept
