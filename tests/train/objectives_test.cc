// Training and evaluation by objective: what a step and an evaluation compute does not depend on how they were reached.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "convert/model_folder.h"
#include "data/synthetic.h"
#include "support/compare.h"
#include "support/temp_folder.h"
#include "support/throws.h"
#include "support/tolerances.h"
#include "train/evaluate.h"
#include "train/loop.h"

namespace transept {
namespace {
using ::testing::HasSubstr;

// Its one stack is causal, which is all the same to samplers, trainer and evaluation.
ArchSpec small_spec() {
  return spec_from_json(parse_json(R"({
    "vocab_size": 400, "hidden_size": 16, "max_position_embeddings": 32, "dropout": 0.1,
    "norm": {"kind": "rmsnorm"}, "position": {"kind": "rope"}, "num_hidden_layers": 2,
    "attention": {"num_attention_heads": 2}, "ffn": {"kind": "swiglu", "intermediate_size": 24}})",
                                   "spec"),
                        "spec");
}

class Objectives : public ::testing::Test {
 protected:
  Objectives() {
    for (uint64_t i = 0; i < 8; ++i) texts_.files.push_back({"file", synthetic_text(300 + 40 * i, i)});
  }
  std::unique_ptr<Model> model() {
    auto m = std::make_unique<Model>(small_spec(), true);
    m->parameters().initialize(m->spec(), 3, pool_);
    return m;
  }
  EvalResult evaluated(const ExampleOptions& options, int64_t batch_tokens = 300, int64_t context = 20,
                       int64_t stride = 0) {
    const Corpus corpus(texts_, *tokenizer_, Unit::kStream, context);
    return evaluate(*model_, {pool_, arena_, nullptr}, corpus.all(), tokenizer_.get(),
                    {.context = context,
                     .stride = stride,
                     .batch_tokens = batch_tokens,
                     .examples = options,
                     .vocabulary = &vocabulary_,
                     .progress = {}});
  }

  ThreadPool pool_{2};
  Arena arena_;
  std::unique_ptr<Tokenizer> tokenizer_ = extend_tokenizer(byte_tokenizer(), 20);
  Vocabulary vocabulary_ = vocabulary_of(*tokenizer_);
  TextFiles texts_;
  std::unique_ptr<Model> model_ = model();
};

TEST_F(Objectives, EvaluationAsksTheSameEveryTimeWhateverTheBatch) {
  int64_t tokens = 0;
  for (const TextFile& f : texts_.files) tokens += static_cast<int64_t>(f.text.size()) + 1;
  --tokens;
  const EvalResult a = evaluated({.objective = Objective::kMlm}), b = evaluated({.objective = Objective::kMlm}),
                   single = evaluated({.objective = Objective::kMlm}, 1);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.tokens_scored, single.tokens_scored);
  EXPECT_NEAR(a.loss, single.loss, tolerance::kLoss);
  EXPECT_NEAR(static_cast<double>(a.tokens_scored), 0.15 * static_cast<double>(tokens),
              5 * std::sqrt(0.15 * 0.85 * static_cast<double>(tokens)));
  EXPECT_TRUE(std::isnan(a.bits_per_byte()));
  EXPECT_FALSE(std::isnan(evaluated({}).bits_per_byte()));
  EXPECT_THAT(input_error([&] { evaluated({.objective = Objective::kMlm}, 300, 20, 5); }), HasSubstr("--stride"));
  EXPECT_THAT(input_error([&] { evaluated({.objective = Objective::kMlm}, 300, 1); }), HasSubstr("--context"));
}

// Every token after the first of each document is scored once, for every stride.
TEST_F(Objectives, SeparateDocumentsAreScoredEachAlone) {
  int64_t tokens = 0;
  for (const TextFile& f : texts_.files) tokens += static_cast<int64_t>(f.text.size());
  const int64_t scored = tokens - 1;  // seven closing ends more, eight first tokens less
  for (const int64_t stride : {0, 7}) {
    const EvalResult apart = evaluated({.separate_documents = true}, 300, 20, stride);
    EXPECT_EQ(apart.tokens_scored, scored);
    EXPECT_EQ(apart.bytes_scored, tokens - 8);
    EXPECT_EQ(evaluated({}, 300, 20, stride).tokens_scored, tokens + 7 - 1);
    // The sum over documents, each as a corpus of its own (where no end is scored).
    double nats = apart.loss * static_cast<double>(scored), alone = 0;
    int64_t count = 0;
    const TextFiles all = texts_;
    for (const TextFile& f : all.files) {
      texts_.files = {f};
      const EvalResult one = evaluated({}, 300, 20, stride);
      alone += one.loss * static_cast<double>(one.tokens_scored);
      count += one.tokens_scored;
    }
    texts_ = all;
    EXPECT_EQ(count, scored - 7);
    EXPECT_GT(nats, alone);
    EXPECT_LT(nats - alone, 7 * 12.0);  // the ends
  }
}

// A ragged batch of any objective is its sequences one by one, each weighed by its targets.
TEST_F(Objectives, RaggedBatchesAreTheirSequences) {
  const Corpus corpus(texts_, *tokenizer_, Unit::kStream, 20);
  ArchSpec spec = small_spec();
  spec.dropout = 0;
  Model plain(spec, true);
  plain.parameters().initialize(spec, 3, pool_);
  Trainer trainer(plain, pool_, {});
  for (const ExampleOptions& options :
       {ExampleOptions{Objective::kCausal, true, false}, ExampleOptions{Objective::kMlm, true, false}}) {
    const Batch batch = Sampler(corpus.all(), 20, 40, 1, options, vocabulary_).batch(0);
    ASSERT_GT(batch.layout.size(), 40u);
    const StepResult whole = trainer.accumulate({&batch, 1}, 0);
    EXPECT_EQ(whole.rows, static_cast<int64_t>(batch.tokens.size()));
    double nats = 0;
    for (const SequenceRows& s : batch.layout) {
      const auto of = [&](const std::vector<int32_t>& rows) {
        return std::span(rows).subspan(static_cast<size_t>(s.first_row), static_cast<size_t>(s.rows));
      };
      Batch one;
      one.add(of(batch.tokens), of(batch.targets));
      if (one.target_count == 0) continue;
      nats += trainer.accumulate({&one, 1}, 0).loss * static_cast<double>(one.target_count);
    }
    EXPECT_NEAR(whole.loss, nats / static_cast<double>(whole.tokens), tolerance::kLoss);
  }
}

TEST_F(Objectives, AResumedRunIsTheUninterruptedOne) {
  const TempFolder folder;
  const Corpus corpus(texts_, nullptr, *tokenizer_, {Unit::kStream, 16, 0.2});
  TrainConfig config;
  config.context = 16;
  config.batch = 6;
  config.accumulation = 2;
  config.seed = 5;
  config.eval_every = 2;
  config.schedule.warmup_steps = 2;
  const auto run = [&](const std::filesystem::path& out, int64_t steps, bool resume) {
    TrainConfig now = config;
    now.schedule.total_steps = 6;
    LoopHooks hooks;
    hooks.io.save = [](const Model& m, const std::filesystem::path& f) { save_model(m, f); };
    hooks.io.load = [](Model& m, const std::filesystem::path& f) { load_weights(m, f); };
    std::atomic<bool> stop{false};
    hooks.stop = &stop;
    hooks.sample = [&](const Model&) {
      stop = true;
      return TrainingSample{};
    };
    now.sample_every = steps < 6 ? steps : 0;
    now.checkpoint_every = 0;
    const auto found = resume ? find_checkpoint(out, [](const std::string&) {}) : std::nullopt;
    const auto m = model();
    std::filesystem::create_directories(out);
    const LoopResult r =
        run_training(*m, pool_, corpus, vocabulary_, now, out, Json{{"config", config_to_json(now)}}, found, 1, hooks);
    const auto values = m->parameters().values();
    return std::tuple(r.step, r.tokens, r.val_loss, std::vector<float>(values.begin(), values.end()));
  };
  std::vector<std::vector<float>> ends;
  for (const ExampleOptions& options :
       {ExampleOptions{}, ExampleOptions{Objective::kCausal, true, false},
        ExampleOptions{Objective::kMlm, false, false}, ExampleOptions{Objective::kMlm, true, false}}) {
    config.examples = options;
    const std::string name = std::to_string(ends.size());
    const auto whole = run(folder / ("whole" + name), 6, false);
    EXPECT_EQ(std::get<0>(run(folder / ("cut" + name), 3, false)), 3);
    const auto resumed = run(folder / ("cut" + name), 6, true);
    EXPECT_EQ(std::get<0>(resumed), 6);
    EXPECT_EQ(whole, resumed);
    for (const auto& other : ends) EXPECT_NE(std::get<3>(whole), other);
    ends.push_back(std::get<3>(whole));
  }
}

TEST(TrainConfig, TheObjectiveIsRecorded) {
  TrainConfig config;
  config.examples = {Objective::kDenoise, true, true};
  const Json recorded = config_to_json(config);
  EXPECT_EQ(recorded.at("objective"), "denoise");
  const TrainConfig back = config_from_json(recorded, "here");
  EXPECT_EQ(back.examples.objective, Objective::kDenoise);
  EXPECT_TRUE(back.examples.separate_documents && back.examples.permute_sentences);
  Json damaged = recorded;
  damaged["objective"] = "other";
  EXPECT_THAT(input_error([&] { config_from_json(damaged, "here"); }), HasSubstr("here"));
}

}  // namespace
}  // namespace transept
