// FLOPs that others have published, to the last printed digit, each with the convention that gives it. Ours are in
// plan/plan.h; where one of theirs is another, the difference stands here.
#include <gtest/gtest.h>

#include <cmath>

#include "plan/plan.h"
#include "spec/presets.h"

namespace transept {
namespace {

constexpr int64_t kContext = 8192;

struct Step {
  double tokens;        // of the batch
  double per_token;     // linear, three passes
  double full, causal;  // attention: every query sees all T keys; half of that
};

// All three take T for the keys that a query sees, or T / 2 of a causal mask, where ours is the exact mean, (T + 1)
// / 2.
Step step_of(const char* name, int64_t batch) {
  const Plan p = make_plan(preset(name), {.context = kContext, .batch = batch});
  const double tokens = static_cast<double>(batch * kContext);
  const double per_key = p.flops.attention_forward_per_token / (static_cast<double>(kContext + 1) / 2);
  const double full = 3 * per_key * static_cast<double>(kContext) * tokens;
  return {tokens, 3 * static_cast<double>(p.flops.linear_forward_per_token), full, full / 2};
}

// Rounded to hundredths of a TFLOP, as printed.
double tflop(double flops) { return std::round(flops / 1e10) / 100; }

// torchtitan (pull request 4300): 6 times every active parameter but the input embedding, norms among them, though they
// multiply no matrix; attention without a mask.
TEST(FlopAnchors, Qwen3MoeAsTorchtitanCounts) {
  const Plan p = make_plan(preset("qwen3-30b-a3b"), {.context = kContext});
  const double parameters = 6 * static_cast<double>(p.parameters.active_without_input_embedding);
  EXPECT_EQ(parameters + step_of("qwen3-30b-a3b", 1).full / static_cast<double>(kContext), 37578559488.0);
}

// MaxText (pull request 1988): a step of 4 sequences; matrices with the head, without the embedding's lookup and
// without norms, as ours; the router among them.
TEST(FlopAnchors, Llama2AsMaxTextCounts) {
  const Step s = step_of("llama-2-7b", 4);
  EXPECT_EQ(tflop(s.per_token * s.tokens), 1299.00);
  EXPECT_EQ(tflop(s.full), 422.21);
  EXPECT_EQ(tflop(s.causal), 211.11);
}

TEST(FlopAnchors, DeepseekV2LiteAsMaxTextCounts) {
  const Step s = step_of("deepseek-v2-lite", 4);
  EXPECT_EQ(tflop(s.per_token * s.tokens), 481.95);
  EXPECT_EQ(tflop(s.full), 222.65);
  EXPECT_EQ(tflop(s.causal), 111.33);
}

}  // namespace
}  // namespace transept
