// Embeddings: rows of tables and sums of their gradients.
#include "ops/embedding.h"

#include "op_case.h"

namespace transept {
namespace {

// `lookups` tables are added, `frozen` of them constants.
struct Added {
  size_t lookups = 0, frozen = 0;
  float scale = 1;
};

OpCase embedding_case(int64_t rows, int64_t width, const Added& added) {
  const int64_t vocab = 29, entries = 40;
  std::vector<int32_t> tokens;
  std::vector<std::vector<int64_t>> row_of(added.lookups);
  const CounterRng rng(4, Stream::kTest);
  for (int64_t r = 0; r < rows; ++r) {
    // Few tokens, so that most of them come several times; the last of each table is used.
    tokens.push_back(r == 0 ? static_cast<int32_t>(vocab - 1)
                            : static_cast<int32_t>(rng.below(static_cast<uint64_t>(r), 7)));
    for (size_t k = 0; k < added.lookups; ++k)
      row_of[k].push_back((r / static_cast<int64_t>(k + 1) + entries - 1) % entries);
  }
  std::vector<std::vector<float>> constants;
  for (size_t k = 0; k < added.frozen; ++k) constants.push_back(random_floats(entries * width, 70 + k));
  const size_t w = static_cast<size_t>(width), trained = added.lookups - added.frozen;
  OpCase c;
  c.name = std::to_string(rows) + " x " + std::to_string(width) + ", " + std::to_string(added.lookups) + " added, " +
           std::to_string(added.frozen) + " of them constant, scale " + std::to_string(added.scale);
  c.params = {{vocab, width}};
  for (size_t k = 0; k < trained; ++k) c.params.push_back({entries, width});
  c.op = [=](const OpContext& context, const std::vector<Var>&, const std::vector<Param>& params) {
    std::vector<Lookup> lookups;
    for (size_t k = 0; k < added.lookups; ++k) {
      const Param table = k < trained ? params[k + 1] : Param{constants[k - trained].data(), nullptr, entries, width};
      lookups.push_back({table, row_of[k]});
    }
    return embed(context, params[0], added.scale, tokens, lookups);
  };
  c.forward = [=](const Values& v) {
    Doubles y;
    for (size_t r = 0; r < tokens.size(); ++r) {
      for (size_t i = 0; i < w; ++i) {
        y.push_back(static_cast<double>(added.scale) * v.params[0][static_cast<size_t>(tokens[r]) * w + i]);
        for (size_t k = 0; k < added.lookups; ++k) {
          const size_t at = static_cast<size_t>(row_of[k][r]) * w + i;
          y.back() += k < trained ? v.params[k + 1][at] : static_cast<double>(constants[k - trained][at]);
        }
      }
    }
    return y;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values gradient;
    for (const Doubles& p : v.params) gradient.params.emplace_back(p.size());
    for (size_t i = 0; i < dy.size(); ++i) {
      const size_t r = i / w, column = i % w;
      gradient.params[0][static_cast<size_t>(tokens[r]) * w + column] += static_cast<double>(added.scale) * dy[i];
      for (size_t k = 0; k < trained; ++k)
        gradient.params[k + 1][static_cast<size_t>(row_of[k][r]) * w + column] += dy[i];
    }
    return gradient;
  };
  return c;
}

constexpr Added kAdded[] = {{}, {.scale = 8}, {.lookups = 1}, {.lookups = 1, .frozen = 1}, {2, 0, 0.5f}, {3, 1, 8}};

TEST(Embedding, ReferenceGradientsMatchCentralDifferences) {
  for (const Added& added : kAdded) EXPECT_TRUE(reference_gradients_match(embedding_case(9, 3, added)));
}

TEST(Embedding, EqualsTheReference) {
  for (const Added& added : kAdded) {
    for (const int64_t rows : {1, 5, 257}) {
      for (const int64_t width : {8, 48, 1030}) check_op(embedding_case(rows, width, added));
    }
  }
}

TEST(EmbeddingDeath, TokensAndRowsLieInTheirTables) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const std::vector<float> memory(12);
  const Param table{memory.data(), nullptr, 3, 4};
  const std::vector<int64_t> first{0}, past{3};
  const std::vector<int32_t> good{2}, negative{-1}, outside{3};
  EXPECT_EQ(embed(context, table, 1, good, {{Lookup{table, first}}}).rows, 1);
  EXPECT_DEATH(embed(context, table, 1, negative), "does not hold");
  EXPECT_DEATH(embed(context, table, 1, outside), "does not hold");
  EXPECT_DEATH(embed(context, table, 1, good, {{Lookup{table, past}}}), "does not hold");
  EXPECT_DEATH(embed(context, table, 1, good, {{Lookup{table, {}}}}), "does not hold");
}

}  // namespace
}  // namespace transept
