// Perplexity protocols: every token scored once, the mean over tokens (B32 and its kind).
#include "train/evaluate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/problem.h"
#include "convert/model_folder.h"
#include "infer/decoder.h"
#include "support/goldens.h"
#include "support/tolerances.h"

namespace transept {
namespace {

class Evaluate : public ::testing::Test {
 protected:
  EvalResult run(int64_t context, int64_t stride, int64_t batch_tokens = 4096, int64_t max_tokens = 0) {
    return evaluate(
        *model_, {pool_, arena_, nullptr}, Split(tokens_, 0, tokens_.size(), Unit::kStream, {}), nullptr,
        {.context = context, .stride = stride, .max_tokens = max_tokens, .batch_tokens = batch_tokens, .progress = {}});
  }
  void SetUp() override {
    golden_ = read_json(goldens() / "bugs/cases.json").at("strided_perplexity");
    model_ = load_model(goldens() / "bugs/gpt2");
    const auto ids = golden_.at("tokens").get<std::vector<int32_t>>();
    tokens_ = TokenArray(model_->spec().vocab_size);
    tokens_.append(ids);
  }
  ThreadPool pool_{2};
  Arena arena_;
  Json golden_;
  std::unique_ptr<Model> model_;
  TokenArray tokens_;
};

TEST_F(Evaluate, SlidingWindowsWeighTokensNotWindows) {
  for (const int64_t batch_tokens : {1, 7, 4096}) {
    const EvalResult r = run(golden_.at("window"), golden_.at("stride"), batch_tokens);
    EXPECT_EQ(r.tokens_scored, golden_.at("tokens_scored"));
    EXPECT_NEAR(r.loss, golden_.at("loss").get<double>(), tolerance::kLoss);
    EXPECT_NEAR(r.perplexity(), golden_.at("perplexity").get<double>(), tolerance::kPerplexity);
    for (const auto& [name, wrong] : golden_.at("wrong").items())
      EXPECT_GT(std::abs(r.perplexity() - wrong.get<double>()), 100 * tolerance::kPerplexity) << name;
  }
}

TEST_F(Evaluate, OneWindowOfAll) {
  const EvalResult r = run(12, 0);
  EXPECT_EQ(r.tokens_scored, 11);
  EXPECT_NEAR(r.loss, golden_.at("one_window").at("loss").get<double>(), tolerance::kLoss);
  const auto& losses = golden_.at("one_window").at("token_losses");
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(r.loss_by_position[i], losses[i].get<double>(), tolerance::kLogits) << i;
}

// For every context and stride, each token after the first is scored once, whatever the batch.
TEST_F(Evaluate, EveryTokenIsScoredOnce) {
  for (int64_t context = 1; context <= 14; ++context) {
    for (int64_t stride = 1; stride <= context; ++stride) {
      const EvalResult r = run(context, stride);
      EXPECT_EQ(r.tokens_scored, 11) << context << " " << stride;
      EXPECT_NEAR(r.loss, run(context, stride, 3).loss, tolerance::kLoss);
    }
  }
}

// A stride of one gives every token the longest context; computed here token by token.
TEST_F(Evaluate, StrideOneEqualsOneWindowAToken) {
  const auto ids = golden_.at("tokens").get<std::vector<int32_t>>();
  const int64_t context = 5, vocab = model_->spec().vocab_size;
  double nats = 0;
  for (size_t t = 1; t < ids.size(); ++t) {
    const size_t begin = t + 1 > static_cast<size_t>(context) ? t + 1 - static_cast<size_t>(context) : 0;
    std::vector<float> logits((t - begin) * static_cast<size_t>(vocab));
    forward_logits(*model_, pool_, std::span(ids).subspan(begin, t - begin), logits);
    const auto last = std::span(logits).last(static_cast<size_t>(vocab));
    double total = 0;
    for (const float z : last) total += std::exp(static_cast<double>(z));
    nats += std::log(total) - static_cast<double>(last[static_cast<size_t>(ids[t])]);
  }
  EXPECT_NEAR(run(context, 1).loss, nats / 11, tolerance::kLoss);
}

TEST_F(Evaluate, RefusesWhatCannotBe) {
  EXPECT_THROW(run(4, 5), InputError);
  EXPECT_THROW(run(0, 0), InputError);
  EXPECT_THROW(run(17, 0), InputError);  // learned positions end at 16
  tokens_ = TokenArray(32);
  tokens_.append(std::vector<int32_t>{3});
  EXPECT_THROW(run(4, 4), InputError);
}

TEST_F(Evaluate, MostTokensBound) {
  EXPECT_EQ(run(3, 3, 4096, 4).tokens_scored, 6);  // whole windows, until the bound is reached
}

}  // namespace
}  // namespace transept
