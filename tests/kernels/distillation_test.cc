#include "kernels/distillation.h"

#include <cmath>
#include <limits>

#include "kernels/cross_entropy.h"
#include "kernels/cross_entropy_ref.h"
#include "kernels/distillation_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kWeights[] = {0, 0.3f, 1};

class DistillationSweep : public ::testing::TestWithParam<RowsShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, DistillationSweep, ::testing::ValuesIn(kRowsShapes));

// Every fourth row is ignored.
TEST_P(DistillationSweep, EqualsTheReference) {
  const RowsShape shape = GetParam();
  constexpr float kScale = 0.125f;
  const int64_t elements = shape.rows * shape.width;
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < shape.rows; ++r)
    targets.push_back(r % 4 == 3 ? kIgnoredTarget : static_cast<int32_t>((r * 7 + shape.width - 1) % shape.width));
  const std::vector<float> teacher = random_floats(elements, 2, 4);
  for (const float softcap : {0.f, 5.f}) {
    std::vector<float> z = random_floats(elements, 1, 6);
    std::vector<double> slopes;
    for (float& v : z) {
      const double product = static_cast<double>(v), cap = static_cast<double>(softcap);
      v = static_cast<float>(ref::finished_logit(product, 1, 0, cap));
      slopes.push_back(ref::finished_logit_slope(product, 1, 0, cap));
    }
    for (const float weight : kWeights) {
      std::vector<double> losses, gradient;
      for (int64_t r = 0; r < shape.rows; ++r) {
        const auto row = [&](const std::vector<double>& all) {
          return std::span(all).subspan(static_cast<size_t>(r * shape.width), static_cast<size_t>(shape.width));
        };
        const std::vector<double> student = as_doubles(z), teachers = as_doubles(teacher);
        const int32_t target = targets[static_cast<size_t>(r)];
        const double share = static_cast<double>(weight);
        losses.push_back(ref::distillation(row(student), row(teachers), share, target));
        for (const double g : ref::distillation_backward(row(student), row(teachers), share, target))
          gradient.push_back(static_cast<double>(kScale) * g * slopes[gradient.size()]);
      }
      for_each_instruction_set([&] {
        GuardedRows logits(shape, z), other(shape, teacher);
        std::vector<float> loss(static_cast<size_t>(shape.rows), NAN);
        distillation_rows(logits.view(), softcap, other.view(), weight, targets.data(), 0, loss.data());
        EXPECT_TRUE(close(loss, losses, tolerance::kKernel)) << weight;
        EXPECT_EQ(logits.values(), z) << "no gradient was asked for";
        loss.assign(loss.size(), NAN);
        distillation_rows(logits.view(), softcap, other.view(), weight, targets.data(), kScale, loss.data());
        EXPECT_TRUE(close(loss, losses, tolerance::kKernel)) << weight;
        EXPECT_TRUE(close(logits.values(), gradient, tolerance::kKernel)) << weight;
        EXPECT_EQ(other.values(), teacher);
        EXPECT_TRUE(logits.guard_intact() && other.guard_intact());
      });
    }
  }
}

// A student that is its teacher has nothing to learn from it, and the hard target's loss is left.
TEST(Distillation, OfAModelFromItself) {
  for_each_instruction_set([&] {
    const std::vector<float> z = random_floats(70, 1, 5);
    GuardedRows logits({1, 70, 0, 0}, z), teacher({1, 70, 0, 0}, z);
    const int32_t target = 3;
    float loss = NAN;
    distillation_rows(logits.view(), 0, teacher.view(), 1, &target, 1, &loss);
    EXPECT_NEAR(loss, 0, tolerance::kKernel);
    for (const float g : logits.values()) EXPECT_NEAR(g, 0, tolerance::kKernel);
  });
}

TEST(Distillation, ForbiddenTokensAndLargeLogits) {
  for_each_instruction_set([&] {
    const int32_t target = 1;
    float loss = NAN;
    GuardedRows logits({1, 4, 0, 0}, {-kInf, 1e4f, 1e4f, -1e4f}), teacher({1, 4, 0, 0}, {-kInf, 3e38f, 1, -kInf});
    distillation_rows(logits.view(), 0, teacher.view(), 0.5f, &target, 1, &loss);
    EXPECT_NEAR(loss, std::log(2.0), tolerance::kKernel);
    EXPECT_TRUE(close(logits.values(), std::vector<double>{0, -0.5, 0.5, 0}, tolerance::kKernel));
  });
}

TEST(Distillation, NaNIsNotHidden) {
  for_each_instruction_set([&] {
    for (size_t at = 0; at < 140; ++at) {
      std::vector<float> both = random_floats(140, 1);
      both[at] = NAN;
      const std::vector<float> z(both.begin(), both.begin() + 70), t(both.begin() + 70, both.end());
      GuardedRows logits({1, 70, 0, 0}, z), teacher({1, 70, 0, 0}, t);
      const int32_t target = 3;
      float loss = 0;
      distillation_rows(logits.view(), 0, teacher.view(), 0.5f, &target, 0, &loss);
      EXPECT_TRUE(std::isnan(loss)) << at;
    }
  });
}

TEST(Distillation, AnIgnoredRowNeverReadsItsLogits) {
  for_each_instruction_set([&] {
    GuardedRows logits({1, 20, 0, 0}), teacher({1, 20, 0, 0});  // all NaN
    const int32_t target = kIgnoredTarget;
    float loss = NAN;
    distillation_rows(logits.view(), 0, teacher.view(), 0.5f, &target, 1, &loss);
    EXPECT_EQ(loss, 0);
    EXPECT_EQ(logits.values(), std::vector<float>(20, 0.f));
  });
}

TEST(DistillationReference, GradientMatchesCentralDifferences) {
  const std::vector<double> teacher = as_doubles(random_floats(7, 2, 2)), z = as_doubles(random_floats(7, 1, 2));
  for (const double weight : {0.0, 0.3, 1.0}) {
    const auto loss = [&](const std::vector<double>& v) { return ref::distillation(v, teacher, weight, 1); };
    std::vector<double> gradient = ref::distillation_backward(z, teacher, weight, 1);
    EXPECT_TRUE(gradient_matches(loss, z, gradient, tolerance::kGradcheck));
    gradient[0] += 1e-5;
    EXPECT_FALSE(gradient_matches(loss, z, gradient, tolerance::kGradcheck)) << "a planted error";
  }
}

// (1 - w) log 4 + w * (log 4 - log 2) for a student that knows nothing and a teacher that has two of four left.
TEST(DistillationReference, AWorkedRow) {
  const std::vector<double> z(4, 3.0), teacher{1, 1, -1000, -1000};
  EXPECT_NEAR(ref::distillation(z, teacher, 0.25, 0), 0.75 * std::log(4.0) + 0.25 * std::log(2.0), tolerance::kDouble);
}

}  // namespace
}  // namespace transept
