// Properties that publications state of whole models: how far windows reach, what the scale of the scores is for, and
// how gradients at the start depend on depth.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "infer/decoder.h"
#include "ops/attention.h"
#include "support/models.h"
#include "train/trainer.h"

namespace transept {
namespace {

ArchSpec stack_of(int64_t layers, const Json& more) {
  Json document = {{"vocab_size", 29},
                   {"hidden_size", 24},
                   {"max_position_embeddings", 64},
                   {"initializer_range", 0.15},
                   {"attention", {{"num_attention_heads", 4}}},
                   {"ffn", {{"intermediate_size", 20}}},
                   {"num_hidden_layers", layers}};
  document.update(more, true);
  return spec_from_json(document, "case");
}

// L layers with windows of W see L (W - 1) + 1 tokens, the query's own among them, and not one more (Mistral 7B,
// arXiv:2310.06825 section 2); without a causal mask as many after it. Seen by changing a token: exactly the rows
// that see it move, and all others keep their bits.
TEST(Window, LayersReachAsFarAsTheirWindowsAddUp) {
  ThreadPool pool(1);
  constexpr int64_t kTokens = 40, kChanged = 19;
  for (const char* topology : {"decoder", "encoder"}) {
    for (const char* position : {"none", "rope", "alibi", "t5"}) {
      for (const int64_t layers : {1, 2, 3}) {
        for (const int64_t window : {1, 2, 5, 7}) {
          const ArchSpec spec = stack_of(layers, {{"topology", topology},
                                                  {"position", {{"kind", position}}},
                                                  {"attention", {{"sliding_window", window}}}});
          const auto model = random_model(spec, false);
          auto ids = random_ids(kTokens, spec.vocab_size, 1);
          const size_t width = static_cast<size_t>(spec.hidden_size);
          std::vector<float> before(ids.size() * width), after(before.size());
          forward_hidden(*model, pool, ids, before);
          ids[kChanged] = (ids[kChanged] + 1) % 29;
          forward_hidden(*model, pool, ids, after);
          const int64_t reach = layers * (window - 1);
          for (int64_t row = 0; row < kTokens; ++row) {
            const size_t at = static_cast<size_t>(row) * width;
            const bool moved = std::memcmp(&before[at], &after[at], width * sizeof(float)) != 0;
            const int64_t back = row - kChanged;
            const bool sees =
                spec.topology == Topology::kEncoder ? std::abs(back) <= reach : back >= 0 && back <= reach;
            ASSERT_EQ(moved, sees) << topology << ' ' << position << ", " << layers << " layers of " << window
                                   << ", row " << row;
          }
        }
      }
    }
  }
}

// The variance of the difference of two scores q.k_1 - q.k_0, for queries and keys of independent elements of variance
// s^2: from the weight that a query gives the second of two keys, whose values are 0 and 1.
double score_variance(int64_t head_dim, double scale, double s) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  constexpr int64_t kPairs = 4000;
  const int64_t width = 3 * head_dim;
  const Var qkv = op.make(2 * kPairs, width);
  const CounterRng rng(static_cast<uint64_t>(head_dim), Stream::kTest);
  for (int64_t r = 0; r < qkv.rows; ++r) {
    float* row = qkv.view().row(r);
    for (int64_t i = 0; i < width; ++i)
      row[i] = i < 2 * head_dim ? static_cast<float>(s * rng.normal(static_cast<uint64_t>(r * width + i)))
                                : static_cast<float>(r % 2);
  }
  AttentionShape shape;
  shape.heads = shape.kv_heads = 1;
  shape.head_dim = head_dim;
  shape.scale = static_cast<float>(scale);
  shape.causal = true;
  const BatchLayout layout = equal_sequences(kPairs, 2);
  const Var out = attention(op, {qkv, 0, qkv, head_dim, 2 * head_dim}, shape, {}, {}, layout, layout, {});
  double squares = 0;
  for (int64_t p = 0; p < kPairs; ++p) {
    const double weight = static_cast<double>(out.view().row(2 * p + 1)[0]);
    squares += std::pow(std::log(weight / (1 - weight)), 2);
  }
  return squares / static_cast<double>(kPairs);
}

// "Assume that the components of q and k are independent with mean 0 and variance 1. Then their dot product has mean 0
// and variance d_k" (arXiv:1706.03762 section 3.2.1, footnote 4), which 1 / sqrt(d_k) undoes. With elements of variance
// s^2 a score has s^4 d_k, and the difference of two twice that. The bound is four standard errors of a variance from
// 4,000 samples, sqrt(2 / 4000) each, and half as much again because products have heavier tails.
TEST(Scores, VarianceGrowsWithTheHeadUnlessScaled) {
  const double s = 0.4, unit = 2 * std::pow(s, 4), bound = 1.5 * 4 * std::sqrt(2.0 / 4000);
  for (const int64_t head_dim : {4, 16, 64, 256}) {
    GqaSpec plain;
    plain.head_dim = head_dim;
    GqaSpec unscaled = plain;
    unscaled.scale = 1;
    const double d = static_cast<double>(head_dim);
    EXPECT_NEAR(score_variance(head_dim, unscaled.score_scale(), s) / (unit * d), 1, bound) << head_dim;
    EXPECT_NEAR(score_variance(head_dim, plain.score_scale(), s) / unit, 1, bound) << head_dim;
  }
}

// Length of the gradient of the last feed-forward network's second matrix at the start, mean over texts of which the
// last token is scored. Set up as in arXiv:2002.04745 section 3.3: matrices with elements of variance 1 / d, inputs of
// variance 1, feed-forward networks as wide as the model.
double last_gradient(const char* placement, int64_t layers) {
  ThreadPool pool(1);
  const ArchSpec spec = stack_of(layers, {{"hidden_size", 64},
                                          {"tie_word_embeddings", false},
                                          {"position", {{"kind", "none"}}},
                                          {"norm", {{"kind", "layernorm"}, {"placement", placement}}},
                                          {"ffn", {{"kind", "relu"}, {"intermediate_size", 64}}}});
  Model model(spec, true);
  Parameters& parameters = model.parameters();
  parameters.initialize(spec, 3, pool);
  const CounterRng rng(3, Stream::kTest);
  for (const auto& e : parameters.entries()) {
    if (e.decl.shape.size() < 2) continue;
    const double sd = e.decl.part == Part::kEmbedding ? 1 : 1 / std::sqrt(static_cast<double>(e.decl.shape[1]));
    const auto values = parameters.values(e);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(sd * rng.normal(static_cast<uint64_t>(e.offset) + i));
  }
  const Parameters::Entry& last = *parameters.find("layers." + std::to_string(layers - 1) + ".ffn.down.weight");
  constexpr int64_t kTokens = 16, kTexts = 24;
  Trainer trainer(model, pool, {});
  double mean = 0;
  for (int64_t text = 0; text < kTexts; ++text) {
    Batch batch;
    batch.layout = equal_sequences(1, kTokens);
    batch.tokens = random_ids(kTokens, spec.vocab_size, static_cast<uint64_t>(text));
    batch.targets.assign(kTokens, kIgnoredTarget);
    batch.targets.back() = static_cast<int32_t>(text);
    batch.target_count = 1;
    trainer.accumulate({&batch, 1}, 0);
    double squares = 0;
    for (const float g : parameters.gradients(last)) squares += static_cast<double>(g) * static_cast<double>(g);
    mean += std::sqrt(squares) / kTexts;
  }
  return mean;
}

// Theorem 1 of the same: with post-norm the length does not fall with the number L of layers, O(d sqrt(ln d)); with
// pre-norm it falls as the residual stream grows, O(d sqrt(ln d / L)). Lemma 2 puts the stream's mean square between
// 1 + L / 2 and 1 + 3 L / 2, and the gradient is inverse to its root, which bounds the quotient of two depths on both
// sides. Post-norm: the same at every depth, within the factor 3 / 2 that random matrices leave.
TEST(Depth, GradientsOfPreAndPostNormAtTheStart) {
  const std::vector<int64_t> depths{2, 8, 32};
  std::vector<double> pre, post;
  for (const int64_t layers : depths) {
    pre.push_back(last_gradient("pre", layers));
    post.push_back(last_gradient("post", layers));
  }
  for (size_t i = 0; i < depths.size(); ++i) {
    for (size_t j = i + 1; j < depths.size(); ++j) {
      const double shallow = static_cast<double>(depths[i]), deep = static_cast<double>(depths[j]);
      EXPECT_GT(pre[j] / pre[i], std::sqrt((1 + shallow / 2) / (1 + 1.5 * deep))) << depths[j];
      EXPECT_LT(pre[j] / pre[i], std::sqrt((1 + 1.5 * shallow) / (1 + deep / 2))) << depths[j];
      EXPECT_GT(post[j] / post[i], 2.0 / 3) << depths[j];
      EXPECT_LT(post[j] / post[i], 1.5) << depths[j];
    }
  }
  EXPECT_GT(post.back(), 4 * pre.back()) << "why post-norm needs a warm-up";
}

}  // namespace
}  // namespace transept
