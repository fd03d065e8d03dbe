// The checkers themselves must see what they are for.
#include "support/rows.h"

#include <cmath>

#include "support/compare.h"
#include "support/tolerances.h"

namespace transept {
namespace {

TEST(GuardedRows, AWriteOutsideARowIsSeen) {
  const RowsShape shape{3, 7, 2, 1};
  for (const int64_t at : {-1, 7, 8, 2 * 9 + 7, 3 * 9}) {
    GuardedRows x(shape, random_floats(21, 1));
    EXPECT_TRUE(x.guard_intact());
    x.view().data[at] = 0;
    EXPECT_FALSE(x.guard_intact()) << at;
  }
}

TEST(GuardedRows, AnElementThatWasNotWrittenIsSeen) {
  GuardedRows x({2, 3, 0, 0});
  for (const float v : x.values()) EXPECT_TRUE(std::isnan(v));
  EXPECT_FALSE(close(x.values(), std::vector<double>(6, 1.0), 1e3));
}

TEST(GuardedRows, MisalignmentIsReal) {
  GuardedRows aligned({1, 16, 0, 0}), off({1, 16, 0, 1});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.view().data) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(off.view().data) % 64, 4u);
}

TEST(Close, AWrongKernelOutputIsSeen) {
  std::vector<float> actual = random_floats(1000, 1);
  const std::vector<double> expected = as_doubles(actual);
  EXPECT_TRUE(close(actual, expected, tolerance::kKernel));
  actual[999] += 1e-4f;
  EXPECT_FALSE(close(actual, expected, tolerance::kKernel));
  actual[999] = NAN;
  EXPECT_FALSE(close(actual, expected, tolerance::kKernel));
}

}  // namespace
}  // namespace transept
