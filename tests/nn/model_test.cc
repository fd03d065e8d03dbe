// Equivalences that need no oracle, over every combination of kinds: decode = forward in any chunks, ring = full inside
// the window, a batch = one by one, recomputed = kept, one thread = many; and gradients against differences of the
// loss.
#include "nn/model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "infer/decoder.h"
#include "support/compare.h"
#include "support/models.h"
#include "support/tolerances.h"
#include "train/trainer.h"

namespace transept {
namespace {

class EveryModel : public ::testing::TestWithParam<SpecCase> {
 protected:
  static constexpr int64_t kTokens = 17;
  ThreadPool pool_{2};
};

TEST_P(EveryModel, DecodesAsItRunsForward) {
  const auto model = random_model(GetParam().spec, false);
  const int64_t vocab = model->spec().vocab_size;
  const auto ids = random_ids(kTokens, vocab, 1);
  std::vector<float> whole(static_cast<size_t>(kTokens * vocab)), chunked(whole.size());
  forward_logits(*model, pool_, ids, whole);
  for (const int64_t chunk : {int64_t{1}, int64_t{3}, int64_t{7}, kTokens}) {
    Decoder decoder(*model, pool_, kTokens);
    for (int64_t at = 0; at < kTokens; at += chunk) {
      const size_t first = static_cast<size_t>(at), count = static_cast<size_t>(std::min(chunk, kTokens - at));
      decoder.feed_all(
          std::span(ids).subspan(first, count),
          std::span(chunked).subspan(first * static_cast<size_t>(vocab), count * static_cast<size_t>(vocab)));
    }
    EXPECT_TRUE(close(chunked, whole, tolerance::kKernel)) << "chunks of " << chunk;
  }
}

TEST_P(EveryModel, ARowOfABatchEqualsItsOwnRun) {
  const auto model = random_model(GetParam().spec, false);
  const auto ids = random_ids(3 * kTokens, model->spec().vocab_size, 2);
  Arena arena;
  const OpContext op{pool_, arena, nullptr};
  // Ragged: rows of 17, 1 and 33 tokens.
  const BatchLayout layout{{0, 17, 0}, {17, 1, 0}, {18, 33, 0}};
  const Var batch = model->hidden(op, {.tokens = ids, .layout = layout, .dropout = {}, .observe = {}});
  for (const SequenceRows& s : layout) {
    const auto own = std::span(ids).subspan(static_cast<size_t>(s.first_row), static_cast<size_t>(s.rows));
    const Var alone = model->hidden(op, {.tokens = own, .layout = {{0, s.rows, 0}}, .dropout = {}, .observe = {}});
    const size_t size = static_cast<size_t>(s.rows * batch.width);
    EXPECT_TRUE(close(std::span<const float>(batch.view().row(s.first_row), size),
                      std::span<const float>(alone.value.data(), size), tolerance::kKernel));
  }
}

// The derivative of the loss along random directions, by differences of the float32 loss, against gradients.
TEST_P(EveryModel, GradientsMatchDifferencesOfTheLoss) {
  const auto model = random_model(GetParam().spec, true);
  Batch batch;
  batch.layout = equal_sequences(2, 8);
  batch.target_count = 16;
  batch.tokens = random_ids(16, model->spec().vocab_size, 3);
  batch.targets = random_ids(16, model->spec().vocab_size, 4);
  Trainer trainer(*model, pool_, {});
  trainer.accumulate({&batch, 1}, 0);
  const auto g = model->parameters().gradients();
  const std::vector<float> gradient(g.begin(), g.end());
  const auto values = model->parameters().values();
  const std::vector<float> at(values.begin(), values.end());
  for (const auto& e : model->parameters().entries()) {
    // Along the gradient itself, where the slope is largest: the loss must change by h * |gradient|.
    double norm = 0;
    for (int64_t i = 0; i < e.size; ++i)
      norm += std::pow(static_cast<double>(gradient[static_cast<size_t>(e.offset + i)]), 2);
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0) << e.decl.name << " receives no gradient";
    const double h = 0.004;  // small: a longer step crosses kinks of ReLU
    double loss[2];
    for (const int side : {0, 1}) {
      for (int64_t i = 0; i < e.size; ++i) {
        const size_t k = static_cast<size_t>(e.offset + i);
        values[k] = at[k] + static_cast<float>((side ? h : -h) * static_cast<double>(gradient[k]) / norm);
      }
      loss[side] = trainer.accumulate({&batch, 1}, 0).loss;
    }
    std::copy(at.begin(), at.end(), values.begin());
    EXPECT_NEAR((loss[1] - loss[0]) / (2 * h), norm, tolerance::kFloatDifference * (norm + 0.05)) << e.decl.name;
  }
}

TEST_P(EveryModel, ThreadsAndRecomputationChangeNothing) {
  ArchSpec spec = GetParam().spec;
  spec.dropout = 0.2;
  Batch batch;
  batch.layout = equal_sequences(3, 30);
  batch.target_count = 90;
  batch.tokens = random_ids(90, spec.vocab_size, 3);
  batch.targets = random_ids(90, spec.vocab_size, 4);
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    for (const bool again : {false, true}) {
      ThreadPool pool(threads);
      const auto model = random_model(spec, true);
      Trainer trainer(*model, pool, {.adamw = {}, .dropout_seed = 4, .recompute = again});
      trainer.accumulate({&batch, 1}, 11);
      const auto g = model->parameters().gradients();
      if (first.empty()) first.assign(g.begin(), g.end());
      EXPECT_EQ(std::memcmp(first.data(), g.data(), g.size_bytes()), 0)
          << threads << " threads" << (again ? ", recomputed" : "");
    }
  }
  // Another pass draws other masks.
  const auto model = random_model(spec, true);
  Trainer trainer(*model, pool_, {.adamw = {}, .dropout_seed = 4, .recompute = false});
  trainer.accumulate({&batch, 1}, 12);
  EXPECT_NE(std::memcmp(first.data(), model->parameters().gradients().data(), first.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryModel, ::testing::ValuesIn(spec_cases()),
                         [](const auto& c) { return c.param.name; });

TEST(Window, NoLargerThanTheContextIsNone) {
  ArchSpec full = spec_cases().front().spec, windowed = full;
  for (LayerSpec& layer : windowed.layers) std::get<GqaSpec>(layer.attention).sliding_window = 17;
  const auto a = random_model(full, false), b = random_model(windowed, false);
  ThreadPool pool(1);
  const auto ids = random_ids(17, full.vocab_size, 1);
  std::vector<float> x(17 * 29), y(x.size());
  forward_logits(*a, pool, ids, x);
  forward_logits(*b, pool, ids, y);
  EXPECT_EQ(x, y);
  for (LayerSpec& layer : windowed.layers) std::get<GqaSpec>(layer.attention).sliding_window = 16;
  forward_logits(*random_model(windowed, false), pool, ids, y);
  EXPECT_NE(x, y);
}

}  // namespace
}  // namespace transept
