// Embeddings: pooled hidden states, alone and in batches.
#include "infer/embed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "support/compare.h"
#include "support/models.h"
#include "support/tolerances.h"

namespace transept {
namespace {

// The mean of hidden states or the first of them, those of the encoder where there is one, through the pooler.
TEST(Embedding, IsThePooledStates) {
  ThreadPool pool(1);
  const auto ids = random_ids(6, 29, 4);
  for (const char* topology : {"decoder", "encoder", "encoder_decoder"}) {
    for (const char* pooling : {"mean", "cls"}) {
      for (const bool pooler : {false, true}) {
        const auto m = random_model(topology_spec(topology, {{"pooling", pooling}, {"pooler", pooler}}), false);
        const std::vector<std::vector<int32_t>> two{ids, random_ids(3, 29, 5)};
        const auto both = embed_sequences(*m, pool, two, embed_options(m->spec()));
        const auto& got = both[0];
        ASSERT_EQ(got.size(), 24u);
        Arena arena;
        const OpContext op{pool, arena, nullptr};
        const ForwardCall call{.tokens = ids, .layout = equal_sequences(1, 6), .dropout = {}, .observe = {}};
        const Var h = m->spec().encoder_decoder() ? m->encoded(op, call) : m->hidden(op, call);
        std::vector<double> pooled(24);
        for (size_t i = 0; i < 24; ++i) {
          for (int64_t r = 0; r < 6; ++r) {
            if (r == 0 || std::string(pooling) == "mean") pooled[i] += static_cast<double>(h.view().row(r)[i]);
          }
          if (std::string(pooling) == "mean") pooled[i] /= 6;
        }
        if (pooler) {
          const auto weight = m->parameters().values(*m->parameters().find("pooler.weight"));
          const auto bias = m->parameters().values(*m->parameters().find("pooler.bias"));
          std::vector<double> out(24);
          for (size_t o = 0; o < 24; ++o) {
            double sum = static_cast<double>(bias[o]);
            for (size_t i = 0; i < 24; ++i) sum += static_cast<double>(weight[o * 24 + i]) * pooled[i];
            out[o] = std::tanh(sum);
          }
          pooled = out;
        }
        for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(static_cast<double>(got[i]), pooled[i], tolerance::kKernel * 10);
      }
    }
  }
  const auto m = random_model(topology_spec("decoder"), false);
  const auto embed = [&](const std::vector<int32_t>& tokens, const EmbedOptions& options = {}) {
    return embed_sequences(*m, pool, {&tokens, 1}, options)[0];
  };
  EXPECT_THROW(embed({}), InputError);
  EXPECT_THROW(embed(random_ids(41, 29, 1)), InputError);
  EXPECT_TRUE(embed_sequences(*m, pool, {}, {}).empty());

  // Length 1, the direction as it was.
  const std::vector<float> plain = embed(ids), unit = embed(ids, {.normalize = true});
  double length = 0;
  for (const float x : plain) length += static_cast<double>(x) * static_cast<double>(x);
  std::vector<double> right;
  for (const float x : plain) right.push_back(static_cast<double>(x) / std::sqrt(length));
  EXPECT_TRUE(close(unit, right, tolerance::kFloat));
}

// A sequence's vector does not depend on the others of its batch.
TEST(Embedding, SequencesOfABatchDoNotSeeEachOther) {
  ThreadPool pool(2);
  const auto m = random_model(topology_spec("encoder"), false);
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t length : {7, 1, 30, 12})
    sequences.push_back(random_ids(length, 29, static_cast<uint64_t>(length)));
  const auto together = embed_sequences(*m, pool, sequences, {});
  for (size_t i = 0; i < sequences.size(); ++i)
    EXPECT_TRUE(
        close(together[i], embed_sequences(*m, pool, std::span(sequences).subspan(i, 1), {})[0], tolerance::kKernel));
}

}  // namespace
}  // namespace transept
