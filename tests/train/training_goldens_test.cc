// Training equals PyTorch's: twenty AdamW steps of a tiny LLaMA and a tiny GPT-2 from the same weights, batches and
// rates (tools/make_goldens.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "ckpt/safetensors.h"
#include "convert/model_folder.h"
#include "support/compare.h"
#include "support/goldens.h"
#include "support/tolerances.h"
#include "train/trainer.h"

namespace transept {
namespace {

class TrainingGoldens : public ::testing::TestWithParam<std::string> {
 protected:
  // Losses of all steps; the model ends in `model_`. `change` may spoil the run.
  void train(const std::function<void(TrainerOptions&)>& change = {}) {
    const auto folder = goldens() / "train" / GetParam();
    hyper_ = read_json(folder / "hyper.json");
    model_ = load_model(folder / "init", LoadFor::kTrain);
    TrainerOptions options;
    options.adamw = {hyper_.at("beta1"), hyper_.at("beta2"), hyper_.at("eps"), hyper_.at("weight_decay"),
                     hyper_.at("clip_grad_norm")};
    if (change) change(options);
    Trainer trainer(*model_, pool_, options);
    const NpyArray tokens = read_npy(folder / "tokens.npy");
    const int64_t steps = tokens.shape[0], rows = tokens.shape[1], length = tokens.shape[2] - 1;
    const std::vector<int64_t> ids = tokens.as_i64();
    for (int64_t s = 0; s < steps; ++s) {
      Batch batch;
      batch.layout = equal_sequences(rows, length);
      batch.target_count = rows * length;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t* row = ids.data() + (s * rows + r) * (length + 1);
        for (int64_t i = 0; i < length; ++i) {
          batch.tokens.push_back(static_cast<int32_t>(row[i]));
          batch.targets.push_back(static_cast<int32_t>(row[i + 1]));
        }
      }
      const StepResult result =
          trainer.step({&batch, 1}, static_cast<uint64_t>(s), hyper_.at("learning_rates").at(static_cast<size_t>(s)));
      losses_.push_back(result.loss);
      norms_.push_back(result.gradient_norm);
    }
  }
  ::testing::AssertionResult weights_equal() {
    const auto final_model = load_model(goldens() / "train" / GetParam() / "final");
    for (const auto& e : model_->parameters().entries()) {
      const auto expected = final_model->parameters().values(*final_model->parameters().find(e.decl.name));
      const auto actual = model_->parameters().values(e);
      if (auto result = close(std::span<const float>(actual), std::span<const float>(expected), tolerance::kTraining);
          !result)
        return result << " in " << e.decl.name;
    }
    return ::testing::AssertionSuccess();
  }

  ThreadPool pool_{2};
  Json hyper_;
  std::unique_ptr<Model> model_;
  std::vector<double> losses_, norms_;
};

TEST_P(TrainingGoldens, LossesAndFinalWeightsEqualPyTorchs) {
  train();
  const auto folder = goldens() / "train" / GetParam();
  EXPECT_TRUE(close(losses_, read_npy(folder / "losses.npy").as_f64(), tolerance::kTraining));
  EXPECT_TRUE(close(norms_, read_npy(folder / "grad_norms.npy").as_f64(), tolerance::kTraining));
  EXPECT_TRUE(weights_equal());
}

TEST_P(TrainingGoldens, RecomputationChangesNothing) {
  train();
  const auto kept = losses_;
  losses_.clear();
  train([](TrainerOptions& o) { o.recompute = Recompute::kFull; });
  EXPECT_EQ(losses_, kept);
}

// Negative controls: a decay or a moment that is slightly off is seen in the weights.
TEST_P(TrainingGoldens, SlightlyOtherOptionsAreSeen) {
  train([](TrainerOptions& o) { o.adamw.weight_decay *= 1.05; });
  EXPECT_FALSE(weights_equal());
  train([](TrainerOptions& o) { o.adamw.beta2 = 0.951; });
  EXPECT_FALSE(weights_equal());
  train([](TrainerOptions& o) { o.adamw.beta1 = 0.902; });
  EXPECT_FALSE(weights_equal());
}

INSTANTIATE_TEST_SUITE_P(Cases, TrainingGoldens, ::testing::Values("llama_gqa_tied", "gpt2"),
                         [](const auto& c) { return c.param; });

// B33: one ragged batch, or two micro-batches of other lengths: the same loss and the same gradients, those of PyTorch.
class Accumulation : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = goldens() / "bugs";
    golden_ = read_json(folder_ / "cases.json").at("accumulation");
    model_ = load_model(folder_ / "gpt2", LoadFor::kTrain);
  }
  static Batch batch(const std::vector<std::vector<int32_t>>& rows) {
    Batch b;
    for (const auto& row : rows) b.add(std::span(row).first(row.size() - 1), std::span(row).subspan(1));
    return b;
  }
  StepResult accumulate(std::span<const Batch> batches) {
    // Dropout is a training option of the stored configuration; the goldens were made without it.
    ArchSpec spec = model_->spec();
    spec.dropout = 0;
    auto plain = std::make_unique<Model>(spec, true);
    load_weights(*plain, folder_ / "gpt2");
    model_ = std::move(plain);
    Trainer trainer(*model_, pool_, {});
    StepResult r = trainer.accumulate(batches, 0);
    r.gradient_norm = trainer.optimizer().gradient_norm(pool_);
    return r;
  }

  ThreadPool pool_{2};
  std::filesystem::path folder_;
  Json golden_;
  std::unique_ptr<Model> model_;
};

TEST_F(Accumulation, EqualsTheBigBatch) {
  std::vector<std::vector<int32_t>> rows;
  for (const Json& row : golden_.at("sequences")) rows.push_back(row.get<std::vector<int32_t>>());
  const std::vector<Batch> one{batch(rows)}, two{batch({rows[0]}), batch({rows[1]})}, swapped{two[1], two[0]};
  std::vector<float> first;
  for (const auto* split : {&one, &two, &swapped}) {
    const StepResult r = accumulate(*split);
    EXPECT_EQ(r.tokens, golden_.at("targets"));
    EXPECT_NEAR(r.loss, golden_.at("loss").get<double>(), tolerance::kLoss);
    EXPECT_GT(std::abs(r.loss - golden_.at("wrong").at("mean_of_sequence_means").get<double>()),
              100 * tolerance::kLoss);
    EXPECT_NEAR(r.gradient_norm, golden_.at("grad_norm").get<double>(), tolerance::kLogits);
    const auto g = model_->parameters().gradients();
    if (first.empty()) first.assign(g.begin(), g.end());
    EXPECT_TRUE(close(std::span<const float>(g), std::span<const float>(first), tolerance::kKernel));
  }
  // Gradients one by one.
  const SafetensorsFile gradients(folder_ / golden_.at("gradients").get<std::string>());
  const auto* table = gradients.find("transformer.wte.weight");
  ASSERT_NE(table, nullptr);
  std::vector<float> expected(static_cast<size_t>(table->elements()));
  read_f32(*table, expected, "gradients");
  EXPECT_TRUE(
      close(std::span<const float>(model_->parameters().gradients(*model_->parameters().find("embedding.weight"))),
            std::span<const float>(expected), tolerance::kTraining));
}

// B34: a real end token counts, and the rows beside a sequence change nothing: a ragged batch is its sequences one by
// one, each weighed by its targets.
TEST_F(Accumulation, ARaggedBatchIsItsSequencesOneByOne) {
  const std::vector<std::vector<int32_t>> rows{{5, 6, 7, 2}, {5, 2}, {9, 3, 3, 8, 1, 4, 2}};
  const std::vector<Batch> together{batch(rows)};
  EXPECT_EQ(together[0].target_count, 10);
  const StepResult all = accumulate(together);
  EXPECT_EQ(all.tokens, 10);
  EXPECT_EQ(all.rows, 10);
  const auto g = model_->parameters().gradients();
  const std::vector<float> whole(g.begin(), g.end());
  double nats = 0;
  std::vector<float> sum(whole.size());
  for (const auto& row : rows) {
    const std::vector<Batch> alone{batch({row})};
    const StepResult one = accumulate(alone);
    nats += one.loss * static_cast<double>(one.tokens);
    const auto h = model_->parameters().gradients();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += h[i] * static_cast<float>(one.tokens) / 10;
  }
  EXPECT_NEAR(all.loss, nats / 10, tolerance::kLoss);
  EXPECT_TRUE(close(std::span<const float>(sum), std::span<const float>(whole), tolerance::kKernel));
}

// B36: with gradients of zero, matrices shrink by lr * decay, and norms and biases stay.
TEST(DecayGroups, NormsAndBiasesDoNotDecay) {
  for (const char* name : {"llama_biases", "gpt2_tied"}) {
    const auto model = load_model(goldens() / "logits" / name, LoadFor::kTrain);
    const auto before = load_model(goldens() / "logits" / name);
    ThreadPool pool(1);
    AdamW optimizer(model->parameters(), {0.9, 0.95, 1e-8, 0.1, 1.0});
    optimizer.step(pool, 0.1, optimizer.gradient_norm(pool));
    int matrices = 0, vectors = 0;
    for (const auto& e : model->parameters().entries()) {
      const auto now = model->parameters().values(e),
                 then = before->parameters().values(*before->parameters().find(e.decl.name));
      const bool matrix = e.decl.shape.size() == 2;
      (matrix ? matrices : vectors) += 1;
      EXPECT_EQ(e.decl.name.find("norm") == std::string::npos && e.decl.name.find("bias") == std::string::npos, matrix)
          << e.decl.name;
      for (size_t i = 0; i < now.size(); ++i)
        EXPECT_FLOAT_EQ(now[i], matrix ? then[i] * 0.99f : then[i]) << e.decl.name;
    }
    EXPECT_GT(matrices, 5);
    EXPECT_GT(vectors, 5);
  }
}

}  // namespace
}  // namespace transept
