#include "kernels/adamw.h"

#include <cmath>

#include "kernels/adamw_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr int kSteps = 5;

AdamWStep step_at(int t) {
  AdamWStep s;
  s.lr = 0.01f;
  s.beta1 = 0.9f;
  s.beta2 = 0.95f;
  s.eps = 1e-3f;  // large enough to matter
  s.weight_decay = 0.1f;
  s.bias_correction1 = static_cast<float>(1 - std::pow(static_cast<double>(s.beta1), t));
  s.bias_correction2 = static_cast<float>(1 - std::pow(static_cast<double>(s.beta2), t));
  s.gradient_scale = 0.25f;
  return s;
}

std::vector<float> gradient_at(int64_t n, int t) { return random_floats(n, 100 + static_cast<uint64_t>(t), 2); }

ref::AdamW reference(int64_t n, const std::vector<float>& start, std::vector<double>& theta) {
  const AdamWStep s = step_at(1);
  ref::AdamW adam{static_cast<double>(s.lr),
                  static_cast<double>(s.beta1),
                  static_cast<double>(s.beta2),
                  static_cast<double>(s.eps),
                  static_cast<double>(s.weight_decay),
                  0,
                  {},
                  {}};
  theta = as_doubles(start);
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<double> g = as_doubles(gradient_at(n, t));
    for (double& v : g) v *= static_cast<double>(s.gradient_scale);
    adam.update(g, theta);
  }
  return adam;
}

TEST(AdamW, FiveStepsEqualTheReference) {
  for (const int64_t n : {0, 1, 7, 15, 16, 17, 64, 127, 384, 1000, 4099}) {
    for (const int64_t misaligned : {0, 1}) {
      const RowsShape shape{1, n, 0, misaligned};
      const std::vector<float> start = random_floats(n, 1), zeros(static_cast<size_t>(n));
      std::vector<double> theta;
      const ref::AdamW adam = reference(n, start, theta);
      for_each_instruction_set([&] {
        GuardedRows m(shape, zeros), v(shape, zeros), p(shape, start);
        for (int t = 1; t <= kSteps; ++t) {
          GuardedRows g(shape, gradient_at(n, t));
          adamw_update(step_at(t), n, g.view().data, m.view().data, v.view().data, p.view().data);
          EXPECT_EQ(g.values(), gradient_at(n, t));
        }
        EXPECT_TRUE(close(p.values(), theta, tolerance::kKernel));
        EXPECT_TRUE(close(m.values(), adam.m, tolerance::kKernel));
        EXPECT_TRUE(close(v.values(), adam.v, tolerance::kKernel));
        EXPECT_TRUE(m.guard_intact() && v.guard_intact() && p.guard_intact());
      });
    }
  }
}

// The first step of Adam is lr * sign(g), whatever the size of g; the decay takes lr * weight_decay of the weight.
TEST(AdamW, FirstStepIsTheSign) {
  AdamWStep s = step_at(1);
  s.eps = 0;
  float g[2] = {1e-3f, -1e3f}, m[2] = {}, v[2] = {}, p[2] = {1, 1};
  adamw_update(s, 2, g, m, v, p);
  EXPECT_NEAR(p[0], 1 - 0.01 * 0.1 - 0.01, tolerance::kKernel);
  EXPECT_NEAR(p[1], 1 - 0.01 * 0.1 + 0.01, tolerance::kKernel);
}

// Without gradient and decay nothing moves, not even by rounding.
TEST(AdamW, NothingMovesWithoutAReason) {
  AdamWStep s = step_at(1);
  s.weight_decay = 0;
  const std::vector<float> start = random_floats(100, 1);
  std::vector<float> g(100), m(100), v(100), p = start;
  for_each_instruction_set([&] {
    adamw_update(s, 100, g.data(), m.data(), v.data(), p.data());
    EXPECT_EQ(p, start);
  });
}

}  // namespace
}  // namespace transept
