#include "kernels/cross_entropy.h"

#include <cmath>
#include <limits>

#include "kernels/cross_entropy_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<RowsShape> shapes() {
  std::vector<RowsShape> out(std::begin(kRowsShapes), std::end(kRowsShapes));
  out.push_back({2, 8192, 0, 0});
  out.push_back({1, 50257, 3, 1});
  return out;
}

// Targets of all columns in turn, every fourth row ignored.
std::vector<int32_t> targets_of(const RowsShape& shape) {
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < shape.rows; ++r) {
    targets.push_back(r % 4 == 3 ? kIgnoredTarget : static_cast<int32_t>((r * 7 + shape.width - 1) % shape.width));
  }
  return targets;
}

struct Expected {
  std::vector<double> loss, gradient;
  Expected(const RowsShape& shape, const std::vector<float>& z, const std::vector<int32_t>& targets, double scale) {
    const std::vector<double> all = as_doubles(z);
    for (int64_t r = 0; r < shape.rows; ++r) {
      const auto row = std::span(all).subspan(static_cast<size_t>(r * shape.width), static_cast<size_t>(shape.width));
      loss.push_back(ref::cross_entropy(row, targets[static_cast<size_t>(r)]));
      for (const double g : ref::cross_entropy_backward(row, targets[static_cast<size_t>(r)]))
        gradient.push_back(g * scale);
    }
  }
};

class CrossEntropySweep : public ::testing::TestWithParam<RowsShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, CrossEntropySweep, ::testing::ValuesIn(shapes()));

TEST_P(CrossEntropySweep, EqualsTheReference) {
  const RowsShape shape = GetParam();
  constexpr float kScale = 0.125f;
  const std::vector<int32_t> targets = targets_of(shape);
  for (const float spread : {1.f, 10.f}) {
    const std::vector<float> z = random_floats(shape.rows * shape.width, 1, spread);
    const Expected expected(shape, z, targets, static_cast<double>(kScale));
    for_each_instruction_set([&] {
      GuardedRows logits(shape, z);
      std::vector<float> loss(static_cast<size_t>(shape.rows), NAN);
      cross_entropy_rows(logits.view(), 0, targets.data(), 0, loss.data());
      EXPECT_TRUE(close(loss, expected.loss, tolerance::kKernel));
      EXPECT_EQ(logits.values(), z) << "no gradient was asked for";
      loss.assign(loss.size(), NAN);
      cross_entropy_rows(logits.view(), 0, targets.data(), kScale, loss.data());
      EXPECT_TRUE(close(loss, expected.loss, tolerance::kKernel));
      EXPECT_TRUE(close(logits.values(), expected.gradient, tolerance::kKernel));
      EXPECT_TRUE(logits.guard_intact());
    });
  }
}

TEST_P(CrossEntropySweep, FinishedLogitsAndTheirGradientsEqualTheReference) {
  const RowsShape shape = GetParam();
  const std::vector<int32_t> targets = targets_of(shape);
  const std::vector<float> products = random_floats(shape.rows * shape.width, 1, 6),
                           biases = random_floats(shape.width, 2);
  for (const float scale : {1.f, 0.25f}) {
    for (const float softcap : {0.f, 5.f}) {
      for (const bool with_bias : {false, true}) {
        std::vector<float> z;
        std::vector<double> finished, slopes;
        for (size_t i = 0; i < products.size(); ++i) {
          const double bias = with_bias ? static_cast<double>(biases[i % biases.size()]) : 0;
          const double product = static_cast<double>(products[i]), s = static_cast<double>(scale),
                       cap = static_cast<double>(softcap);
          finished.push_back(ref::finished_logit(product, s, bias, cap));
          slopes.push_back(ref::finished_logit_slope(product, s, bias, cap));
          z.push_back(static_cast<float>(finished.back()));
        }
        Expected expected(shape, z, targets, 1);
        for (size_t i = 0; i < slopes.size(); ++i) expected.gradient[i] *= slopes[i];
        for_each_instruction_set([&] {
          GuardedRows logits(shape, products);
          finish_logits_rows(scale, with_bias ? biases.data() : nullptr, softcap, logits.view());
          EXPECT_TRUE(close(logits.values(), finished, tolerance::kKernel));
          std::vector<float> loss(static_cast<size_t>(shape.rows), NAN);
          cross_entropy_rows(logits.view(), softcap, targets.data(), 1, loss.data());
          EXPECT_TRUE(close(loss, expected.loss, tolerance::kKernel));
          EXPECT_TRUE(close(logits.values(), expected.gradient, tolerance::kKernel));
          EXPECT_TRUE(logits.guard_intact());
        });
      }
    }
  }
}

struct Extreme {
  const char* name;
  std::vector<float> z;
  int32_t target;
};

TEST(CrossEntropy, ExtremeLogits) {
  const Extreme cases[] = {
      {"large and equal", {1e4f, 1e4f, 1e4f, 1e4f}, 2},
      {"large and near", {1e4f, 1e4f - 3, -1e4f, 1e4f + 2}, 1},
      {"large negative", {-1e4f, -1e4f + 1, -1e4f - 1}, 0},
      {"forbidden tokens", {-kInf, 1, -kInf, 2, -kInf}, 1},
      {"only one allowed", {-kInf, 5, -kInf}, 1},
      {"out of float's exponent range", {3e38f, 1, -3e38f}, 0},
      {"one token", {7}, 0},
  };
  for_each_instruction_set([&] {
    for (const Extreme& c : cases) {
      const RowsShape shape{1, static_cast<int64_t>(c.z.size()), 0, 0};
      const Expected expected(shape, c.z, {c.target}, 1);
      GuardedRows logits(shape, c.z);
      float loss = NAN;
      cross_entropy_rows(logits.view(), 0, &c.target, 1, &loss);
      EXPECT_NEAR(loss, expected.loss[0], tolerance::kKernel * (1 + std::abs(expected.loss[0]))) << c.name;
      for (size_t i = 0; i < c.z.size(); ++i)
        EXPECT_NEAR(logits.values()[i], expected.gradient[i], tolerance::kKernel) << c.name;
    }
  });
}

TEST(CrossEntropy, AForbiddenTargetCostsInfinity) {
  for_each_instruction_set([&] {
    GuardedRows logits({1, 3, 0, 0}, {-kInf, 1, 1});
    const int32_t target = 0;
    float loss = 0;
    cross_entropy_rows(logits.view(), 0, &target, 1, &loss);
    EXPECT_EQ(loss, kInf);
    EXPECT_EQ(logits.values(), (std::vector<float>{-1, 0.5f, 0.5f}));
  });
}

TEST(CrossEntropy, NaNIsNotHidden) {
  for_each_instruction_set([&] {
    for (size_t at = 0; at < 70; ++at) {
      std::vector<float> z = random_floats(70, 1);
      z[at] = NAN;
      GuardedRows logits({1, 70, 0, 0}, z);
      const int32_t target = 3;
      float loss = 0;
      cross_entropy_rows(logits.view(), 0, &target, 0, &loss);
      EXPECT_TRUE(std::isnan(loss)) << at;
    }
  });
}

TEST(CrossEntropy, AnIgnoredRowNeverReadsItsLogits) {
  for_each_instruction_set([&] {
    GuardedRows logits({1, 20, 0, 0});  // all NaN
    const int32_t target = kIgnoredTarget;
    float loss = NAN;
    cross_entropy_rows(logits.view(), 0, &target, 1, &loss);
    EXPECT_EQ(loss, 0);
    EXPECT_EQ(logits.values(), std::vector<float>(20, 0.f));
  });
}

TEST(CrossEntropyReference, GradientMatchesCentralDifferences) {
  for (const size_t n : {2u, 7u, 30u}) {
    const std::vector<double> z = as_doubles(random_floats(static_cast<int64_t>(n), 1, 2));
    const auto loss = [](const std::vector<double>& v) { return ref::cross_entropy(v, 1); };
    std::vector<double> gradient = ref::cross_entropy_backward(z, 1);
    EXPECT_TRUE(gradient_matches(loss, z, gradient, tolerance::kGradcheck));
    gradient[0] += 1e-5;
    EXPECT_FALSE(gradient_matches(loss, z, gradient, tolerance::kGradcheck)) << "a planted error";
  }
}

TEST(CrossEntropyReference, TheSlopeOfFinishedLogitsMatchesCentralDifferences) {
  for (const double softcap : {0.0, 0.5, 30.0}) {
    // By the bias, whose slope is that of scale * z + bias.
    const auto f = [&](const std::vector<double>& v) { return ref::finished_logit(0.7, 2, v[0], softcap); };
    EXPECT_TRUE(gradient_matches(f, {0.1}, {ref::finished_logit_slope(0.7, 2, 0.1, softcap)}, tolerance::kGradcheck));
  }
}

TEST(CrossEntropyReference, EqualLogitsCostTheLogarithmOfTheVocabulary) {
  EXPECT_NEAR(ref::cross_entropy(std::vector<double>(256, 3.0), 17), std::log(256.0), tolerance::kDouble);
}

}  // namespace
}  // namespace transept
