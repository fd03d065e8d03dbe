// Scale, bias and soft cap of logits against double, on every instruction set.
#include "kernels/logits.h"

#include <cmath>

#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

class LogitsSweep : public ::testing::TestWithParam<RowsShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, LogitsSweep, ::testing::ValuesIn(kRowsShapes));

TEST_P(LogitsSweep, EqualsTheFormula) {
  const RowsShape shape = GetParam();
  const std::vector<float> x = random_floats(shape.rows * shape.width, 1, 4),
                           dy = random_floats(shape.rows * shape.width, 2), bias = random_floats(shape.width, 3);
  for (const float cap : {0.f, 4.f, 30.f}) {
    for (const bool biased : {false, true}) {
      std::vector<double> z, dz;
      for (size_t i = 0; i < x.size(); ++i) {
        double v = 1.5 * static_cast<double>(x[i]);
        if (biased) v += static_cast<double>(bias[i % static_cast<size_t>(shape.width)]);
        const double c = static_cast<double>(cap), t = cap > 0 ? std::tanh(v / c) : 0;
        z.push_back(cap > 0 ? c * t : v);
        dz.push_back(static_cast<double>(dy[i]) * (1 - t * t));
      }
      for_each_instruction_set([&] {
        GuardedRows rows(shape, x), gradient(shape, dy);
        finish_logits_rows({1.5f, cap}, biased ? bias.data() : nullptr, rows.view());
        EXPECT_TRUE(close(rows.values(), z, tolerance::kKernel));
        EXPECT_TRUE(rows.guard_intact());
        if (cap == 0) return;
        uncap_logits_gradient(cap, rows.view(), gradient.view());
        EXPECT_TRUE(close(gradient.values(), dz, tolerance::kKernel));
        EXPECT_TRUE(gradient.guard_intact());
      });
    }
  }
}

}  // namespace
}  // namespace transept
