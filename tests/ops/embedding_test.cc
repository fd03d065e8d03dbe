// Embeddings: rows of tables and sums of their gradients.
#include "ops/embedding.h"

#include "op_case.h"

namespace transept {
namespace {

OpCase embedding_case(int64_t rows, int64_t width, bool with_positions, double scale = 1) {
  const int64_t vocab = 29, positions = 40;
  std::vector<int32_t> tokens;
  std::vector<int64_t> at;
  const CounterRng rng(4, Stream::kTest);
  for (int64_t r = 0; r < rows; ++r) {
    // Few tokens, so that most of them come several times; the last of each table is used.
    tokens.push_back(r == 0 ? static_cast<int32_t>(vocab - 1)
                            : static_cast<int32_t>(rng.below(static_cast<uint64_t>(r), 7)));
    at.push_back((r + positions - 1) % positions);
  }
  const auto row = [width](const Doubles& table, int64_t r, int64_t c) {
    return table[static_cast<size_t>(r * width + c)];
  };
  OpCase c;
  c.name = std::to_string(rows) + " x " + std::to_string(width) + (with_positions ? " with positions" : "");
  c.params = {{vocab, width}};
  if (with_positions) c.params.push_back({positions, width});
  c.op = [=](const OpContext& context, const std::vector<Var>&, const std::vector<Param>& params) {
    std::vector<Lookup> added;
    if (with_positions) added.push_back({params[1], at});
    return embed(context, params[0], static_cast<float>(scale), tokens, added);
  };
  c.forward = [=](const Values& v) {
    Doubles y;
    for (size_t r = 0; r < tokens.size(); ++r) {
      for (int64_t i = 0; i < width; ++i)
        y.push_back(scale * row(v.params[0], tokens[r], i) + (with_positions ? row(v.params[1], at[r], i) : 0));
    }
    return y;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values gradient;
    for (const Doubles& p : v.params) gradient.params.emplace_back(p.size());
    for (size_t i = 0; i < dy.size(); ++i) {
      const size_t w = static_cast<size_t>(width), r = i / w, k = i % w;
      gradient.params[0][static_cast<size_t>(tokens[r]) * w + k] += scale * dy[i];
      if (with_positions) gradient.params[1][static_cast<size_t>(at[r]) * w + k] += dy[i];
    }
    return gradient;
  };
  return c;
}

TEST(Embedding, ReferenceGradientsMatchCentralDifferences) {
  for (const bool positions : {false, true}) EXPECT_TRUE(reference_gradients_match(embedding_case(9, 3, positions)));
}

TEST(Embedding, EqualsTheReference) {
  for (const bool positions : {false, true}) {
    for (const int64_t rows : {1, 5, 257}) {
      for (const int64_t width : {8, 48, 1030}) check_op(embedding_case(rows, width, positions));
    }
  }
  check_op(embedding_case(257, 48, true, 2.5));
}

// Constant tables (sinusoids) have no gradient, and others beside them keep theirs.
TEST(Embedding, AConstantTableIsAddedAndNotTrained) {
  ThreadPool pool(1);
  Arena arena;
  Tape tape;
  const OpContext context{pool, arena, &tape};
  const std::vector<float> memory{1, 2, 3, 4};
  std::vector<float> gradient(4);
  const std::vector<int64_t> rows{1, 0};
  const std::vector<int32_t> tokens{0, 0};
  const std::vector<Lookup> added{{{memory.data(), nullptr, 2, 2}, rows}};
  const Var y = embed(context, {memory.data(), gradient.data(), 2, 2}, 2, tokens, added);
  EXPECT_EQ(std::vector<float>(y.value.data(), y.value.data() + 4), (std::vector<float>{2 + 3, 4 + 4, 2 + 1, 4 + 2}));
  y.gradient->buffer = Buffer(arena, 4);
  std::fill_n(y.gradient->buffer.data(), 4, 1.f);
  tape.backward();
  EXPECT_EQ(gradient, (std::vector<float>{4, 4, 0, 0}));
}

TEST(EmbeddingDeath, TokensAndPositionsLieInTheirTables) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const std::vector<float> memory(12);
  const Param table{memory.data(), nullptr, 3, 4};
  const std::vector<int64_t> first{0}, past{3};
  const std::vector<int32_t> good{2}, negative{-1}, outside{3};
  const std::vector<Lookup> at_first{{table, first}}, beyond{{table, past}};
  EXPECT_EQ(embed(context, table, 1, good, at_first).rows, 1);
  EXPECT_DEATH(embed(context, table, 1, negative, {}), "does not hold");
  EXPECT_DEATH(embed(context, table, 1, outside, {}), "does not hold");
  EXPECT_DEATH(embed(context, table, 1, good, beyond), "does not hold");
}

}  // namespace
}  // namespace transept
