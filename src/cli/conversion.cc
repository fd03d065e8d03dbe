#include "cli/conversion.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "base/problem.h"
#include "base/stop_request.h"
#include "cli/model_argument.h"
#include "convert/model_folder.h"
#include "data/pairs.h"
#include "plan/plan.h"
#include "study/calibration_text.h"
#include "study/model_io.h"
#include "train/loop.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr double kHeldOut = 0.1;  // as in training
constexpr int64_t kUsualContext = 1024;
constexpr int64_t kProbeTokens = 2048;

void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

// The text of a conversion, and how the model reads it.
class ConversionText {
 public:
  ConversionText(const Model& model, const fs::path& folder, const ConversionOptions& options)
      : tokenizer_(load_tokenizer(folder)), vocabulary_(vocabulary_of(*tokenizer_)) {
    const ArchSpec& spec = model.spec();
    const std::vector<fs::path> paths(options.data.begin(), options.data.end());
    eval_.context = options.context > 0 ? options.context : std::min(spec.max_position_embeddings, kUsualContext);
    eval_.examples.objective = default_objective(stacks_of(spec.topology), are_pairs(paths));
    eval_.vocabulary = &vocabulary_;
    check_objective(eval_.examples.objective, stacks_of(spec.topology));
    model.check_input({}, eval_.context - 1, "--context");
    check_examples(eval_.examples, vocabulary_, eval_.context);
    const TextFiles texts = read_texts(paths);
    for (const fs::path& p : texts.skipped) say(p.string() + ": left out, it is empty or not text");
    corpus_.emplace(texts, nullptr, *tokenizer_,
                    CorpusOptions{.unit = unit_of(eval_.examples, options.lines),
                                  .context = eval_.context,
                                  .val_fraction = kHeldOut,
                                  .window = window_tokens(eval_.examples.objective, eval_.context, vocabulary_)});
    for (const Split& split : {corpus_->train(), corpus_->val()}) {
      for (int64_t i = 0; i < split.tokens(); ++i) {
        const int32_t token = split.token(i);
        if (token >= spec.vocab_size) model.check_input({&token, 1}, 0, "--data");
      }
    }
  }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Corpus& corpus() const { return *corpus_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const EvalOptions& evaluation() const { return eval_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  Vocabulary vocabulary_;
  EvalOptions eval_;
  std::optional<Corpus> corpus_;
};

// Of the recovery. Perplexity of a model of 140,000 parameters, trained for 4,000 steps at 1e-3 to 1.381 and taken from
// four KV heads to one (3.566), after 100 and after 400 steps of recovery:
//   rate   3e-5   1e-4   3e-4   1e-3
//   100   1.960  1.592  1.481  1.441
//   400   1.547  1.445  1.409  1.400
// A third of the rate with which a model was trained brings back nearly what all of it does; and large models were
// trained with about this one.
constexpr double kRecoveryRate = 3e-4;

constexpr double kRecoveryTeacher = 0.8;  // docs/studies.md, KV heads: measured beside 0

// Uptraining (arXiv:2305.13245 section 2.1).
TrainConfig recovery_config(const ConversionOptions& options, const ConversionText& text, uint64_t seed) {
  TrainConfig config;
  config.context = text.evaluation().context;
  config.batch = options.recover_batch;
  config.examples = text.evaluation().examples;
  config.seed = seed;
  config.eval_every = config.checkpoint_every = 0;
  config.eval_tokens = kProbeTokens;
  config.schedule = usual_schedule(ScheduleKind::kCosine, options.recover_lr > 0 ? options.recover_lr : kRecoveryRate,
                                   options.recover_steps);
  throw_if_any(config.check());
  return config;
}

// What tells a recovery from any other, with the model as converted.
Json recovery_run(Model& converted, const Teacher& teacher, const ConversionText& text, const TrainConfig& config) {
  const std::span<const float> values = converted.parameters().values();
  Fnv1a weights;
  weights.add_bytes(values.data(), values.size_bytes());
  return {{"weights", weights.value()},
          {"spec", spec_to_json(converted.spec())},
          {"teacher", teacher.weight},
          {"data", fingerprint(text.corpus().train())},
          {"config", config_to_json(config)}};
}

LoopResult recover(Model& model, const Teacher& teacher, ThreadPool& pool, const ConversionText& text,
                   const TrainConfig& config, const fs::path& folder) {
  make_writable_folder(folder);
  catch_stop_signals();
  const Json run = recovery_run(model, teacher, text, config);
  std::optional<FoundCheckpoint> resume = find_checkpoint(folder, say);
  if (resume && resume->state.run != run) {
    say("the recovery that was begun here was another one: it is given up");
    resume.reset();
  }
  if (resume) say(fmt::format("goes on after step {} of the recovery", resume->state.step));
  LoopHooks hooks;
  hooks.io = folder_io(text.tokenizer());
  hooks.teacher = teacher;
  Progress progress(config.schedule.total_steps);
  hooks.progress = [&](const ProgressState& state) { progress.update(state); };
  hooks.stop = &stop_requested();
  hooks.save_due = save_now_and_then();
  PlanOptions plan;
  plan.context = config.context;
  plan.batch = config.batch;
  const double flops = static_cast<double>(make_plan(model.spec(), plan).flops.train_per_token);
  const LoopResult result =
      run_training(model, pool, text.corpus(), text.vocabulary(), config, folder, run, resume, flops, hooks);
  progress.finish();
  return result;
}

}  // namespace

fs::path recovery_folder(const fs::path& out) { return out / "recovery"; }

bool recovery_can_go_on(const fs::path& out) {
  try {
    return find_checkpoint(recovery_folder(out), {}).has_value();
  } catch (const InputError&) {
    return false;
  }
}

void end_recovery(const fs::path& out, bool recovered) {
  const fs::path folder = recovery_folder(out);
  if (recovered) fs::rename(folder / "metrics.jsonl", out / "recovery.jsonl");
  fs::remove_all(folder);
}

void add_conversion_options(CLI::App* sub, ConversionOptions& options) {
  sub->add_option("--data", options.data,
                  "text files and folders: conversions are calibrated and recovered on it, and measured on the last "
                  "tenth, which is held out");
  sub->add_option("--context", options.context,
                  "tokens of a window of --data (default: the model's longest, at most 1024)")
      ->check(at_least_one());
  sub->add_flag("--lines", options.lines, "every line of --data is a document of its own");
  sub->add_option("--recover", options.recover_steps, "train the converted model for so many steps on --data")
      ->check(at_least_one());
  sub->add_option("--recover-lr", options.recover_lr, "highest learning rate of --recover (default: 3e-4)")
      ->check(CLI::PositiveNumber);
  sub->add_option(
         "--recover-teacher", options.recover_teacher,
         "share of the loss of --recover that is the divergence from the model before its conversion; the rest "
         "is the text's (default: 0.8)")
      ->check(CLI::Range(0.0, 1.0));
  sub->add_option("--recover-batch", options.recover_batch, "sequences of a step of --recover")
      ->check(at_least_one())
      ->capture_default_str();
}

Problems check(const ConversionOptions& options) {
  Problems problems;
  if (options.recover_steps > 0 && options.data.empty())
    problems.push_back({"--recover", "trains on --data, and there is none", "give --data"});
  if (options.recover_lr > 0 && options.recover_steps == 0)
    problems.push_back({"--recover-lr", "is for --recover", "give --recover STEPS, or leave it out"});
  if (options.recover_teacher && options.recover_steps == 0)
    problems.push_back({"--recover-teacher", "is for --recover", "give --recover STEPS, or leave it out"});
  if (options.data.empty() && (options.context > 0 || options.lines)) {
    problems.push_back(
        {options.lines ? "--lines" : "--context", "is for --data, and there is none", "give --data, or leave it out"});
  }
  return problems;
}

Converted run_conversion(Conversion conversion, const fs::path& source_folder, const ConversionOptions& options,
                         const Globals& globals, const fs::path& out) {
  const std::unique_ptr<Model> source = load_model(source_folder);
  ThreadPool pool = globals.pool();
  if (options.data.empty()) {
    return {conversion.convert(*source, false), start_receipt(conversion.description, source->spec(), conversion.spec)};
  }
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  if (!has_tokenizer(source_folder))
    throw InputError("--data", "needs the model's tokenizer, which it has none of",
                     "put its tokenizer.json or tokenizer.model into the folder");
  const ConversionText text(*source, source_folder, options);
  std::optional<TrainConfig> recovery;
  if (options.recover_steps > 0) recovery = recovery_config(options, text, globals.seed);

  if (conversion.calibrate) {
    conversion.description["calibration_tokens"] = read_calibration_text(
        text.corpus().train(), text.evaluation().context, text.evaluation().examples, text.vocabulary(), globals.seed,
        source->spec().hidden_size, [&](const Batch& batch) { conversion.calibrate(*source, op, batch); });
  }
  Converted result{conversion.convert(*source, recovery.has_value()),
                   start_receipt(conversion.description, source->spec(), conversion.spec)};
  const Model& converted = *result.model;

  const ConversionProbe probe(*source, op, text.corpus().val(), text.evaluation(), text.vocabulary(), kProbeTokens);
  MeasuredDamage& measured = result.receipt.measured.emplace();
  measured.held_out_tokens = text.corpus().val().tokens();
  measured.probe_tokens = probe.tokens();
  measured.context = text.evaluation().context;
  measured.objective = objective_name(text.evaluation().examples.objective);
  measured.loss_before = probe.loss(*source);
  measured.loss_after = probe.loss(converted);
  measured.logits = probe.logits(converted);
  say(fmt::format("perplexity {:.3f}, converted {:.3f}; {} layers one by one", std::exp(measured.loss_before),
                  std::exp(measured.loss_after), conversion.layers.size()));
  for (const LayerPlace& place : conversion.layers)
    measured.layers.push_back(probe.layer(*conversion.convert_layer(*source, place), place));

  if (recovery) {
    const Teacher teacher{source.get(), options.recover_teacher.value_or(kRecoveryTeacher)};
    const LoopResult trained = recover(*result.model, teacher, pool, text, *recovery, recovery_folder(out));
    result.interrupted = trained.interrupted;
    if (result.interrupted) {
      say(fmt::format("stopped after step {} of the recovery: the same command goes on from there", trained.step));
      return result;
    }
    result.receipt.recovery = {.steps = trained.step,
                               .tokens = trained.tokens,
                               .lr = recovery->schedule.peak,
                               .teacher = teacher.weight,
                               .seconds = trained.seconds,
                               .loss = probe.loss(converted),
                               .logits = probe.logits(converted)};
  }
  return result;
}

}  // namespace transept
