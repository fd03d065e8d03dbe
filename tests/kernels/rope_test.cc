#include "kernels/rope.h"

#include <cmath>

#include "kernels/rope_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr double kAmplitude = 1.25;  // of the tables; it reaches both directions

struct RopeCase {
  int64_t rows, heads, head_dim, rotated, extra, gap, misaligned;  // extra: floats of a row after its heads
};

void PrintTo(const RopeCase& c, std::ostream* out) {
  *out << c.rows << " rows of " << c.heads << " heads of " << c.head_dim << ", rotated " << c.rotated << ", extra "
       << c.extra;
}

constexpr RopeCase kCases[] = {
    {3, 2, 2, 2, 0, 0, 0},      {2, 3, 7, 6, 0, 2, 1},    {2, 1, 16, 16, 5, 0, 0}, {3, 3, 34, 34, 0, 1, 1},
    {4, 6, 64, 64, 0, 0, 0},    {2, 2, 64, 16, 64, 7, 1}, {2, 2, 80, 80, 0, 0, 3}, {1, 2, 127, 126, 1, 0, 1},
    {2, 2, 128, 128, 0, 16, 0}, {0, 2, 64, 64, 0, 0, 0},  {2, 2, 64, 0, 0, 0, 0},  {2, 1, 1000, 1000, 0, 0, 1},
};

class RopeSweep : public ::testing::TestWithParam<RopeCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, RopeSweep, ::testing::ValuesIn(kCases));

TEST_P(RopeSweep, BothDirectionsEqualTheReference) {
  const RopeCase c = GetParam();
  const int64_t width = c.heads * c.head_dim + c.extra, pairs = c.rotated / 2;
  const RowsShape shape{c.rows, width, c.gap, c.misaligned}, tables{c.rows, pairs, 3, 1};
  const std::vector<float> x = random_floats(c.rows * width, 1);
  const std::vector<double> angles = as_doubles(random_floats(c.rows * pairs, 2, 100));
  std::vector<float> cosines, sines;
  for (const double a : angles) {
    cosines.push_back(static_cast<float>(kAmplitude * std::cos(a)));
    sines.push_back(static_cast<float>(kAmplitude * std::sin(a)));
  }
  GuardedRows cos(tables, cosines), sin(tables, sines);
  for (const RopePairing pairing : {RopePairing::kHalfSplit, RopePairing::kInterleaved}) {
    SCOPED_TRACE(pairing == RopePairing::kHalfSplit ? "half-split" : "interleaved");
    const ref::RopeShape reference{width, c.heads, c.head_dim, c.rotated, pairing, kAmplitude};
    const std::vector<double> forward = ref::rope(reference, as_doubles(x), angles),
                              backward = ref::rope_backward(reference, as_doubles(x), angles);
    for_each_instruction_set([&] {
      for (const int direction : {1, -1}) {
        GuardedRows rows(shape, x);
        rope_rotate(pairing, rows.view(), c.heads, c.head_dim, c.rotated, cos.view().data, sin.view().data,
                    cos.view().stride, direction);
        EXPECT_TRUE(close(rows.values(), direction == 1 ? forward : backward, tolerance::kKernel));
        EXPECT_TRUE(rows.guard_intact());
        // What does not turn keeps its bits.
        const std::vector<float> after = rows.values();
        for (size_t i = 0; i < x.size(); ++i) {
          const int64_t column = static_cast<int64_t>(i) % width;
          const bool turns = column < c.heads * c.head_dim && column % c.head_dim < c.rotated;
          if (!turns) {
            EXPECT_EQ(after[i], x[i]);
          }
        }
      }
    });
  }
}

TEST(RopeReference, GradientMatchesCentralDifferences) {
  const std::vector<double> x = as_doubles(random_floats(34, 1)), dy = as_doubles(random_floats(34, 2));
  const std::vector<double> angles = as_doubles(random_floats(6, 3));
  for (const RopePairing pairing : {RopePairing::kHalfSplit, RopePairing::kInterleaved}) {
    const ref::RopeShape shape{17, 2, 8, 6, pairing, kAmplitude};
    const auto loss = [&](const std::vector<double>& v) {
      const std::vector<double> y = ref::rope(shape, v, angles);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    std::vector<double> gradient = ref::rope_backward(shape, dy, angles);
    EXPECT_TRUE(gradient_matches(loss, x, gradient, tolerance::kGradcheck));
    std::swap(gradient[0], gradient[3]);
    EXPECT_FALSE(gradient_matches(loss, x, gradient, tolerance::kGradcheck)) << "a planted error";
  }
}

TEST(RopeReference, AQuarterTurn) {
  // Two pairs, the first turned by 90 degrees: (a, b) -> (-b, a). They are (1, 3) and (2, 4), or (1, 2) and (3, 4).
  const std::vector<double> x{1, 2, 3, 4}, angles{std::acos(0.0), 0};
  EXPECT_TRUE(close(ref::rope({4, 1, 4, 4}, x, angles), std::vector<double>{-3, 2, 1, 4}, tolerance::kDouble));
  EXPECT_TRUE(close(ref::rope({4, 1, 4, 4, RopePairing::kInterleaved}, x, angles), std::vector<double>{-2, 1, 3, 4},
                    tolerance::kDouble));
}

}  // namespace
}  // namespace transept
