// Rows of different length in one batch. A layout has no padding: each row has its own positions from 0, so that no
// query is without a key and no shorter row reads shifted positions (huggingface/transformers #3021, #38690).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "equivalence/hashed_model.h"
#include "infer/kv_store.h"
#include "support/compare.h"
#include "support/goldens.h"
#include "support/models.h"
#include "support/tolerances.h"
#include "train/trainer.h"

namespace transept {
namespace {

struct Kind {
  std::string name, family;
  Json document;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

Json document(const Json& norm, const Json& position, const Json& attention, const Json& ffn) {
  return {{"vocab_size", 32}, {"hidden_size", 16},     {"max_position_embeddings", 16},
          {"norm", norm},     {"position", position},  {"attention", attention},
          {"ffn", ffn},       {"num_hidden_layers", 2}};
}

// The three families of the reports, with and without a window; rotated, added and biased positions.
std::vector<Kind> kinds() {
  const Json biases = {{"num_attention_heads", 2}, {"qkv_bias", true}, {"output_bias", true}};
  const Json grouped = {{"num_attention_heads", 4}, {"num_key_value_heads", 2}};
  const Json ffn = {{"kind", "gelu_tanh"}, {"intermediate_size", 64}, {"bias", true}};
  const Json layernorm = {{"kind", "layernorm"}}, rmsnorm = {{"kind", "rmsnorm"}, {"eps", 1e-6}};
  Json bloom = document(layernorm, {{"kind", "alibi"}}, biases, ffn);
  bloom["embedding_norm"] = true;
  std::vector<Kind> all = {
      {"gpt2", "gpt2", document(layernorm, {{"kind", "learned"}}, biases, ffn)},
      {"llama", "llama",
       document(rmsnorm, {{"kind", "rope"}}, grouped, {{"kind", "swiglu"}, {"intermediate_size", 24}})},
      {"bloom", "bloom", bloom}};
  for (size_t i = 0; i < 3; ++i) {
    Kind windowed = all[i];
    windowed.name += "_window";
    windowed.document["attention"]["sliding_window"] = 3;
    all.push_back(windowed);
  }
  return all;
}

const std::vector<int32_t> kPrompt{3, 7, 11, 15, 19, 23, 27, 31, 5, 9};
constexpr int64_t kLengths[] = {10, 5, 1, 7};

// The first tokens of the prompt, a row of each length.
void ragged(std::vector<int32_t>& tokens, BatchLayout& layout) {
  for (const int64_t length : kLengths) {
    layout.push_back({static_cast<int64_t>(tokens.size()), length, 0});
    tokens.insert(tokens.end(), kPrompt.begin(), kPrompt.begin() + length);
  }
}

class RaggedRows : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Model> model(bool trainable = false) const {
    return hashed_model(spec_from_json(GetParam().document, "case"), GetParam().family, trainable);
  }
  // Hidden states of the first `length` tokens of the prompt by themselves.
  Var alone(const Model& model, int64_t length) {
    return model.hidden(op_, {.tokens = std::span(kPrompt).first(static_cast<size_t>(length)),
                              .layout = equal_sequences(1, length),
                              .dropout = {},
                              .observe = {}});
  }
  static std::span<const float> rows(const Var& x, int64_t first, int64_t count) {
    return {x.view().row(first), static_cast<size_t>(count * x.width)};
  }

  ThreadPool pool_{2};
  Arena arena_;
  OpContext op_{pool_, arena_, nullptr};
};

TEST_P(RaggedRows, EqualOneByOne) {
  const auto m = model();
  std::vector<int32_t> tokens;
  BatchLayout layout;
  ragged(tokens, layout);
  const Var batch = m->hidden(op_, {.tokens = tokens, .layout = layout, .dropout = {}, .observe = {}});
  for (const SequenceRows& s : layout) {
    const auto got = rows(batch, s.first_row, s.rows);
    EXPECT_TRUE(std::all_of(got.begin(), got.end(), [](float x) { return std::isfinite(x); }));
    const Var own = alone(*m, s.rows);
    EXPECT_TRUE(close(got, rows(own, 0, s.rows), tolerance::kKernel)) << s.rows << " tokens";
  }
}

// Each row is fed to a cache of the whole batch, half of it and then token by token until it ends: later steps hold
// fewer rows, each at its own position.
TEST_P(RaggedRows, EqualOneByOneThroughTheCache) {
  const auto m = model();
  KvStore cache(m->spec(), std::size(kLengths), static_cast<int64_t>(kPrompt.size()));
  // Rows of a step are those of the cache's sequences, in order; a sequence that has ended repeats nothing.
  std::vector<int32_t> tokens;
  BatchLayout layout;
  for (const int64_t length : kLengths) {
    const int64_t half = (length + 1) / 2;
    layout.push_back({static_cast<int64_t>(tokens.size()), half, 0});
    tokens.insert(tokens.end(), kPrompt.begin(), kPrompt.begin() + half);
  }
  std::vector<Var> own;
  for (const int64_t length : kLengths) own.push_back(alone(*m, length));
  while (!tokens.empty()) {
    const Var step =
        m->hidden(op_, {.tokens = tokens, .layout = layout, .cache = &cache, .dropout = {}, .observe = {}});
    tokens.clear();
    for (size_t s = 0; s < layout.size(); ++s) {
      SequenceRows& at = layout[s];
      EXPECT_TRUE(
          close(rows(step, at.first_row, at.rows), rows(own[s], at.first_position, at.rows), tolerance::kKernel))
          << kLengths[s] << " tokens, from position " << at.first_position;
      at = {static_cast<int64_t>(tokens.size()), 1, at.first_position + at.rows};
      if (at.first_position >= kLengths[s]) at = {at.first_row, 0, kLengths[s]};
      if (at.rows > 0) tokens.push_back(kPrompt[static_cast<size_t>(at.first_position)]);
    }
  }
}

// A step of training on the batch: finite, and the gradients are those of the rows one by one.
TEST_P(RaggedRows, TrainAsOneByOne) {
  Batch together;
  std::vector<Batch> one_by_one;
  for (const int64_t length : kLengths) {
    const std::vector<int32_t> tokens(kPrompt.begin(), kPrompt.begin() + length);
    std::vector<int32_t> targets(kPrompt.begin() + 1, kPrompt.begin() + length);
    targets.push_back(2);
    together.add(tokens, targets);
    one_by_one.emplace_back().add(tokens, targets);
  }
  std::vector<float> gradients[2];
  double losses[2];
  for (const bool apart : {false, true}) {
    const auto m = model(true);
    Trainer trainer(*m, pool_, {});
    const StepResult result = apart ? trainer.accumulate(one_by_one, 0) : trainer.accumulate({&together, 1}, 0);
    losses[apart] = result.loss;
    const auto g = m->parameters().gradients();
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_TRUE(std::all_of(g.begin(), g.end(), [](float x) { return std::isfinite(x); }));
    gradients[apart].assign(g.begin(), g.end());
  }
  EXPECT_NEAR(losses[0], losses[1], tolerance::kLoss);
  EXPECT_TRUE(close(gradients[0], gradients[1], tolerance::kLogits));
}

INSTANTIATE_TEST_SUITE_P(Families, RaggedRows, ::testing::ValuesIn(kinds()),
                         [](const auto& c) { return c.param.name; });

// The report's own row: five tokens beside seven. Where the batch's width gave the positions, the shorter row read
// positions 2 to 6 (tests/goldens/bugs/cases.json).
TEST(RaggedRows, ShorterRowReadsItsOwnPositions) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  const Json right = parse_json(read_file(goldens() / "bugs/cases.json", 1 << 20), "cases.json")["left_padding"];
  const auto model = hashed_model(spec_from_json(kinds()[0].document, "case"), "gpt2");
  std::vector<int32_t> tokens = right["row_beside"].get<std::vector<int32_t>>();
  const auto shorter = right["tokens"].get<std::vector<int32_t>>();
  const int64_t beside = static_cast<int64_t>(tokens.size()), rows = static_cast<int64_t>(shorter.size());
  tokens.insert(tokens.end(), shorter.begin(), shorter.end());
  std::vector<float> logits(32);
  const auto last = [&](int64_t first_position) {
    const BatchLayout layout{{0, beside, 0}, {beside, rows, first_position}};
    const Var hidden = model->hidden(op, {.tokens = tokens, .layout = layout, .dropout = {}, .observe = {}});
    model->logits(op, hidden.view().slice(beside + rows - 1, 1), Rows{logits.data(), 1, 32, 32});
    return logits;
  };
  EXPECT_TRUE(close(last(0), right["last_logits"].get<std::vector<double>>(), tolerance::kLogits));
  EXPECT_TRUE(close(last(2), right["wrong"]["last_logits_of_shifted_positions"].get<std::vector<double>>(),
                    tolerance::kLogits));
}

}  // namespace
}  // namespace transept
