#include "study/plain_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "kernels/attention_ref.h"
#include "support/compare.h"
#include "support/tolerances.h"

namespace transept::plain {
namespace {

Matrix random_matrix(int64_t rows, int64_t columns, uint32_t substream) {
  const CounterRng rng(1, Stream::kTest, substream);
  Matrix m{rows, columns};
  for (size_t i = 0; i < m.elements.size(); ++i) m.elements[i] = rng.normal(i);
  return m;
}

// Two keys, one number a head: the probability of the second is the logistic function of the difference of scores.
TEST(PlainAttention, OfTwoKeysIsLogistic) {
  const Matrix q{2, 1, {2, -1}}, k{2, 1, {0.5, 1.5}}, v{2, 1, {3, 7}};
  const double second = 1 / (1 + std::exp(-2.0)), of_the_other = 1 / (1 + std::exp(1.0));
  const Head head = scaled_dot_product_attention(q, k, v, Mask::kNone);
  EXPECT_TRUE(close(head.probabilities.elements,
                    std::vector<double>{1 - second, second, 1 - of_the_other, of_the_other}, tolerance::kDouble));
  EXPECT_TRUE(
      close(head.output.elements, std::vector<double>{3 + 4 * second, 3 + 4 * of_the_other}, tolerance::kDouble));
  const Head causal = scaled_dot_product_attention(q, k, v, Mask::kCausal);
  EXPECT_TRUE(close(causal.output.elements, std::vector<double>{3, 3 + 4 * of_the_other}, tolerance::kDouble));
}

// Scores of four elements are halved.
TEST(PlainAttention, DividesScoresByTheRootOfTheHeadsSize) {
  const Matrix q{1, 4, {1, 1, 1, 1}}, k{2, 4, {0, 0, 0, 0, 1, 1, 1, 1}};
  const Head head = scaled_dot_product_attention(q, k, k, Mask::kNone);
  EXPECT_TRUE(close(head.probabilities.elements, std::vector<double>{1 / (1 + std::exp(2.0)), 1 / (1 + std::exp(-2.0))},
                    tolerance::kDouble));
}

// The reference of the kernels was written apart from this one.
TEST(PlainAttention, EqualsTheReferenceOfTheKernels) {
  constexpr int64_t kRows = 7, kWidth = 3;
  for (const HeadCounts counts : {HeadCounts{1, 1}, HeadCounts{4, 4}, HeadCounts{6, 2}, HeadCounts{4, 1}}) {
    for (const Mask mask : {Mask::kNone, Mask::kCausal}) {
      const Matrix q = random_matrix(kRows, counts.heads * kWidth, 0),
                   k = random_matrix(kRows, counts.kv_heads * kWidth, 1),
                   v = random_matrix(kRows, counts.kv_heads * kWidth, 2), d_output = random_matrix(kRows, q.columns, 3);
      ref::AttentionInput in;
      in.heads = counts.heads, in.kv_heads = counts.kv_heads, in.head_dim = kWidth;
      in.scale = 1 / std::sqrt(static_cast<double>(kWidth));
      in.key_positions.resize(kRows);
      std::iota(in.key_positions.begin(), in.key_positions.end(), 0);
      in.q = q.elements, in.k = k.elements, in.v = v.elements;
      in.causal = mask == Mask::kCausal;
      const ref::AttentionGradients expected = ref::attention_backward(in, d_output.elements);
      const InputGradients d = multi_head_attention_gradients(q, k, v, counts, mask, d_output);
      EXPECT_TRUE(close(multi_head_attention(q, k, v, counts, mask).elements, ref::attention_forward(in).out,
                        tolerance::kClosedForm));
      EXPECT_TRUE(close(d.q.elements, expected.dq, tolerance::kClosedForm));
      EXPECT_TRUE(close(d.k.elements, expected.dk, tolerance::kClosedForm));
      EXPECT_TRUE(close(d.v.elements, expected.dv, tolerance::kClosedForm));
    }
  }
}

TEST(PlainAttention, GradientsOfTheLayerMatchCentralDifferences) {
  const HeadCounts counts{4, 2};
  const Matrix x = random_matrix(5, 8, 0), d_output = random_matrix(5, 8, 1);
  Projections w{random_matrix(8, 8, 2), random_matrix(8, 4, 3), random_matrix(8, 4, 4), random_matrix(8, 8, 5)};
  const Projections d = attention_layer_gradients(x, w, counts, Mask::kCausal, d_output);
  for (Matrix Projections::* weight : {&Projections::w_q, &Projections::w_k, &Projections::w_v, &Projections::w_o}) {
    const auto loss = [&](const std::vector<double>& elements) {
      Projections at = w;
      (at.*weight).elements = elements;
      const Matrix y = attention_layer(x, at, counts, Mask::kCausal);
      return std::inner_product(y.elements.begin(), y.elements.end(), d_output.elements.begin(), 0.0);
    };
    EXPECT_TRUE(gradient_matches(loss, (w.*weight).elements, (d.*weight).elements, tolerance::kGradcheck));
  }
}

}  // namespace
}  // namespace transept::plain
