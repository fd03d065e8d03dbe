// Receipts of conversions: the figures by hand on models whose difference is known, and the document.
#include "study/conversion_receipt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convert/kv_heads.h"
#include "data/sampler.h"
#include "infer/decoder.h"
#include "support/compare.h"
#include "support/models.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

void zero(std::span<float> values) { std::fill(values.begin(), values.end(), 0.f); }

class Probe : public ::testing::Test {
 protected:
  static constexpr int64_t kContext = 16, kTokens = 100;

  // `spoil` may change the source before it is probed.
  void build(const std::string& topology, const Json& changes = Json::object(),
             const std::function<void(Parameters&)>& spoil = {}) {
    source_ = random_model(topology_spec(topology, changes), false);
    if (spoil) spoil(source_->parameters());
    tokens_ = TokenArray(29);
    tokens_.append(random_ids(400, 29, 3));
    options_.context = kContext;
    if (topology == "encoder_decoder") options_.examples.objective = Objective::kDenoise;
    vocabulary_.start = vocabulary_.bos = 0;
    vocabulary_.eos = 1;
    vocabulary_.mask = 2;
    for (int32_t id = 3; id < 29; ++id) vocabulary_.ordinary.push_back(id);
    vocabulary_.special.assign(29, false);
    vocabulary_.full_stop.assign(29, false);
    for (const size_t id : {0, 1, 2}) vocabulary_.special[id] = true;
    options_.vocabulary = &vocabulary_;
    probe_.emplace(*source_, op_, held_out(), options_, vocabulary_, kTokens);
  }
  Split held_out() const { return Split(tokens_, 0, tokens_.size(), Unit::kStream, documents_); }
  // The source with one parameter changed.
  std::unique_ptr<Model> changed(const std::string& name, const std::function<void(std::span<float>)>& change) const {
    auto copy = convert_kv_heads(*source_, {.heads = 4});
    change(copy->parameters().values(*copy->parameters().find(name)));
    return copy;
  }

  ThreadPool pool_{1};
  Arena arena_;
  OpContext op_{pool_, arena_, nullptr};
  TokenArray tokens_;
  const std::vector<int64_t> documents_{0, 400};
  Vocabulary vocabulary_;
  EvalOptions options_;
  std::unique_ptr<Model> source_;
  std::optional<ConversionProbe> probe_;
};

TEST_F(Probe, SameModelsDifferInNothing) {
  build("decoder");
  const auto same = convert_kv_heads(*source_, {.heads = 4});
  const LogitDamage d = probe_->logits(*same);
  EXPECT_EQ(d.max_error, 0);
  EXPECT_EQ(d.relative_rms, 0);
  EXPECT_NEAR(d.kl_nats, 0, tolerance::kDouble);
  EXPECT_EQ(d.same_choice, 1);
  const LayerDamage layer = probe_->layer(*same, {false, 1});
  EXPECT_EQ(layer.attention_error, 0);
  EXPECT_EQ(layer.loss_increase, 0);
  EXPECT_EQ(layer.cross_attention_error, std::nullopt);
  EXPECT_EQ(probe_->loss(*same), probe_->loss(*source_));
  EXPECT_GE(probe_->tokens(), kTokens);
  EXPECT_LT(probe_->tokens(), kTokens + kContext);
}

// A bias of 2 more on one logit.
TEST_F(Probe, LogitsByHand) {
  const Json head{{"head_bias", true}, {"tie_word_embeddings", false}};
  const auto add = [](std::span<float> bias) { bias[7] += 2; };
  build("decoder", head);
  const LogitDamage d = probe_->logits(*changed("head.bias", add));
  EXPECT_NEAR(d.max_error, 2, tolerance::kKernel);
  EXPECT_NEAR(d.rms_error, std::sqrt(4.0 / 29), tolerance::kKernel);
  EXPECT_GT(d.same_choice, 0);
  EXPECT_LT(d.same_choice, 1);

  // From a uniform distribution the divergence is known.
  build("decoder", head, [](Parameters& p) {
    for (const char* name : {"head.weight", "head.bias"}) zero(p.values(*p.find(name)));
  });
  const LogitDamage uniform = probe_->logits(*changed("head.bias", add));
  EXPECT_NEAR(uniform.kl_nats, std::log(28 + std::exp(2.0)) - std::log(29) - 2.0 / 29, tolerance::kFloat);
}

// An attention that adds nothing any more is off by all that it changed.
TEST_F(Probe, LayersByHand) {
  for (const char* placement : {"pre", "post_sublayer"}) {
    build("decoder", {{"norm", {{"kind", "rmsnorm"}, {"placement", placement}}}});
    const LayerDamage d = probe_->layer(*changed("layers.1.attention.output.weight", zero), {false, 1});
    EXPECT_NEAR(d.attention_error, 1, tolerance::kKernel) << placement;
    EXPECT_NE(d.loss_increase, 0);
    EXPECT_EQ(probe_->layer(*changed("layers.1.attention.output.weight", zero), {false, 0}).attention_error, 0);
  }
}

TEST_F(Probe, LayersOfAnEncoderAndADecoder) {
  build("encoder_decoder");
  const LayerDamage cross = probe_->layer(*changed("layers.0.cross_attention.output.weight", zero), {false, 0});
  EXPECT_EQ(cross.attention_error, 0);
  EXPECT_NEAR(cross.cross_attention_error.value(), 1, tolerance::kKernel);
  const auto encoder = changed("encoder.layers.1.attention.output.weight", zero);
  EXPECT_NEAR(probe_->layer(*encoder, {true, 1}).attention_error, 1, tolerance::kKernel);
  EXPECT_EQ(probe_->layer(*encoder, {true, 1}).cross_attention_error, std::nullopt);
  EXPECT_EQ(probe_->layer(*encoder, {false, 0}).attention_error, 0) << "it has read no source yet";
}

// Masked tokens: the positions that are asked for, and no others.
TEST_F(Probe, ReadsWhatIsScored) {
  options_.examples.objective = Objective::kMlm;
  build("encoder");
  const auto damaged = changed("layers.0.ffn.down.weight", zero);
  const Sampler sampler(held_out(), kContext, 1, 0, options_.examples, vocabulary_);
  double of_scored = 0, of_others = 0;
  int64_t scored = 0;
  for (int64_t i = 0; i < sampler.units_per_epoch() && scored < kTokens; ++i) {
    const Batch batch = sampler.batch(static_cast<uint64_t>(i));
    scored += batch.target_count;
    std::vector<float> before(batch.tokens.size() * 29), after(before.size());
    forward_logits(*source_, pool_, batch.tokens, before);
    forward_logits(*damaged, pool_, batch.tokens, after);
    for (size_t at = 0; at < before.size(); ++at) {
      double& largest = batch.targets[at / 29] == kIgnoredTarget ? of_others : of_scored;
      largest = std::max(largest, std::abs(static_cast<double>(after[at]) - static_cast<double>(before[at])));
    }
  }
  EXPECT_EQ(probe_->tokens(), scored);
  EXPECT_GT(of_others, 1.01 * of_scored) << "or the test would see no difference";
  EXPECT_NEAR(probe_->logits(*damaged).max_error, of_scored, tolerance::kKernel);
}

ConversionReceipt of_specs() {
  const auto spec = [](int64_t kv_heads) {
    return topology_spec("encoder_decoder",
                         {{"attention", {{"num_attention_heads", 4}, {"num_key_value_heads", kv_heads}}}});
  };
  return start_receipt({{"kind", "kv_heads"}, {"method", "mean"}}, spec(4), spec(1));
}

TEST(ConversionReceipt, SaysWhatTheSpecsSay) {
  const Json document = to_json(of_specs());
  // Two layers of two times 24 elements, of target and of source; bf16.
  EXPECT_EQ(document["kv_cache"]["elements_per_token"], (Json{{"before", 96}, {"after", 24}}));
  EXPECT_EQ(document["kv_cache"]["source_elements_per_token"], (Json{{"before", 96}, {"after", 24}}));
  EXPECT_EQ(document["kv_cache"]["bytes_per_token"], (Json{{"before", 192}, {"after", 48}}));
  EXPECT_EQ(document["kv_cache"]["bytes"], (Json{{"before", 40 * 384}, {"after", 40 * 96}}));
  // Six attentions lose three of four KV heads: 2 x 18 rows of 24.
  EXPECT_EQ(document["parameters"]["before"].get<int64_t>() - document["parameters"]["after"].get<int64_t>(),
            6 * 36 * 24);
  EXPECT_FALSE(document.contains("perplexity"));
  EXPECT_THAT(to_text(of_specs()), HasSubstr("method mean"));
}

TEST(ConversionReceipt, SaysWhatWasMeasured) {
  ConversionReceipt receipt = of_specs();
  receipt.measured = {
      .held_out_tokens = 5000,
      .probe_tokens = 2048,
      .context = 16,
      .objective = "causal",
      .loss_before = 1,
      .loss_after = NAN,
      .logits = {.max_error = 3, .rms_error = 0.5, .relative_rms = 0.25, .kl_nats = 0.125, .same_choice = 0.75},
      .layers = {{.place = {true, 2},
                  .attention_error = 0.0625,
                  .cross_attention_error = {},
                  .loss = 2,
                  .loss_increase = -0.5}}};
  Json document = to_json(receipt);
  EXPECT_TRUE(document["loss"]["after"].is_null()) << "no number in JSON";
  EXPECT_DOUBLE_EQ(document["perplexity"]["before"].get<double>(), std::exp(1.0));
  EXPECT_EQ(document["logits"]["after"]["kl_nats"], 0.125);
  EXPECT_EQ(document["layers"][0]["stack"], "encoder");
  EXPECT_EQ(document["layers"][0]["layer"], 2);
  EXPECT_FALSE(document.contains("recovery"));
  receipt.recovery = {.steps = 7, .tokens = 1000, .lr = 1e-4, .teacher = 0.75, .seconds = 2, .loss = 1.5, .logits = {}};
  document = to_json(receipt);
  EXPECT_DOUBLE_EQ(document["perplexity"]["recovered"].get<double>(), std::exp(1.5));
  EXPECT_EQ(document["recovery"]["steps"], 7);
  EXPECT_EQ(document["recovery"]["teacher"], 0.75);
  const std::string text = to_text(receipt);
  for (const char* part : {"recovered", "encoder layer 2", "6.25 %", "-0.5000", "25 %", "KL 0.1250 nats", "75.0 %",
                           "5,000", "75 % of the loss"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace transept
