// Training against a teacher: what the trainer makes of a batch, from the logits of both models in double.
#include <gtest/gtest.h>

#include "kernels/cross_entropy.h"
#include "kernels/distillation_ref.h"
#include "support/models.h"
#include "support/rows.h"
#include "support/tolerances.h"
#include "train/batch_call.h"
#include "train/trainer.h"

namespace transept {
namespace {

constexpr int64_t kVocabulary = 29;

class Teaching : public ::testing::Test {
 protected:
  Teaching() {
    for (const int64_t rows : {7, 12, 1}) {
      batches_.emplace_back();
      std::vector<int32_t> tokens, targets;
      for (int32_t i = 0; i < rows; ++i) {
        tokens.push_back((i * 5 + 3) % static_cast<int32_t>(kVocabulary));
        targets.push_back(i % 4 == 2 ? kIgnoredTarget : (i * 7 + 1) % static_cast<int32_t>(kVocabulary));
      }
      batches_.back().add(tokens, targets);
    }
  }
  std::vector<double> logits(const Model& model, const Batch& batch) {
    const OpContext op{pool_, arena_, nullptr};
    std::vector<float> out(batch.tokens.size() * static_cast<size_t>(kVocabulary));
    model.logits(op, model.hidden(op, call_of(batch)).view(),
                 {out.data(), static_cast<int64_t>(batch.tokens.size()), kVocabulary, kVocabulary});
    return as_doubles(out);
  }
  StepResult step_of(Model& model, const Teacher& teacher) {
    return Trainer(model, pool_, {.adamw = {}, .teacher = teacher}).step(batches_, 0, 0);
  }

  ThreadPool pool_{2};
  Arena arena_;
  std::vector<Batch> batches_;
};

TEST_F(Teaching, TheLossIsTheTextsAndTheTeachers) {
  const auto student = random_model(topology_spec("decoder"), true);
  const auto teacher = random_model(topology_spec("decoder", {{"hidden_size", 16}}), false, 6);
  for (const double weight : {0.0, 0.25, 1.0}) {
    double nats = 0;
    int64_t count = 0;
    for (const Batch& b : batches_) {
      const std::vector<double> z = logits(*student, b), t = logits(*teacher, b);
      const auto row = [](const std::vector<double>& all, size_t r) {
        return std::span(all).subspan(r * static_cast<size_t>(kVocabulary), static_cast<size_t>(kVocabulary));
      };
      for (size_t r = 0; r < b.targets.size(); ++r)
        nats += ref::distillation(row(z, r), row(t, r), weight, b.targets[r]);
      count += b.target_count;
    }
    const StepResult step = step_of(*student, {teacher.get(), weight});
    EXPECT_EQ(step.tokens, count);
    EXPECT_NEAR(step.loss, nats / static_cast<double>(count), tolerance::kLoss) << weight;
  }
}

TEST_F(Teaching, AModelLearnsNothingFromItself) {
  const auto student = random_model(topology_spec("decoder"), true),
             teacher = random_model(topology_spec("decoder"), false);
  const StepResult hard = step_of(*student, {}), soft = step_of(*student, {teacher.get(), 1});
  EXPECT_NEAR(soft.loss, 0, tolerance::kLoss);
  EXPECT_LT(soft.gradient_norm, 1e-5 * hard.gradient_norm);
}

}  // namespace
}  // namespace transept
