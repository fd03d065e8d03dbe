#include "train/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/memory.h"
#include "train/evaluate.h"
#include "train/metrics.h"
#include "train/routers.h"
#include "train/tensorboard.h"

namespace transept {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Clock::duration kBetweenSaves = std::chrono::seconds(20);  // at the least
constexpr int kTimesASave = 20;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Batch> batches_of_step(const Sampler& sampler, const TrainConfig& config, int64_t step) {
  std::vector<Batch> batches;
  for (int64_t k = 0; k < config.accumulation; ++k)
    batches.push_back(sampler.batch(static_cast<uint64_t>((step - 1) * config.accumulation + k)));
  return batches;
}

TrainerOptions trainer_options(const TrainConfig& config) { return {config.adamw, config.seed, config.recompute}; }

bool due(int64_t every, int64_t step) { return every > 0 && step % every == 0; }

}  // namespace

namespace {

struct ToJson {
  Json out = Json::object();
  template <class T>
  void operator()(const char* name, T& value, const char*, bool) {
    if constexpr (std::is_same_v<T, ScheduleKind>) {
      out[name] = schedule_name(value);
    } else if constexpr (std::is_same_v<T, Objective>) {
      out[name] = objective_name(value);
    } else if constexpr (std::is_same_v<T, Recompute>) {
      out[name] = recompute_name(value);
    } else {
      out[name] = value;
    }
  }
};

struct FromJson {
  const Json& in;
  template <class T>
  void operator()(const char* name, T& value, const char*, bool) {
    if constexpr (std::is_same_v<T, ScheduleKind>) {
      value = schedule_from_name(in.at(name).get<std::string>()).value();
    } else if constexpr (std::is_same_v<T, Objective>) {
      value = objective_from_name(in.at(name).get<std::string>()).value();
    } else if constexpr (std::is_same_v<T, Recompute>) {
      value = recompute_from_name(in.at(name).get<std::string>()).value();
    } else {
      value = in.at(name).get<T>();
    }
  }
};

}  // namespace

Json config_to_json(TrainConfig config) {
  ToJson v;
  config.fields(v);
  v.out["seed"] = config.seed;
  return v.out;
}

TrainConfig config_from_json(const Json& document, const std::string& where) {
  TrainConfig config;
  try {
    FromJson v{document};
    config.fields(v);
    config.seed = document.at("seed").get<uint64_t>();
  } catch (const std::exception&) {
    throw InputError(where, "holds a damaged configuration");
  }
  return config;
}

Problems TrainConfig::check() const {
  Problems problems;
  const auto at_least = [&](const char* flag, double value, double low, bool strictly = false) {
    if (std::isfinite(value) && (strictly ? value > low : value >= low)) return;
    std::string got = std::to_string(value), bound = std::to_string(low);
    for (std::string* s : {&got, &bound}) {
      if (s->find('.') != std::string::npos) s->erase(s->find_last_not_of('0') + 1);
      if (s->back() == '.') s->pop_back();
    }
    problems.push_back(
        {flag, got + " is out of range", std::string("allowed is ") + (strictly ? "more than " : "at least ") + bound});
  };
  const auto below_one = [&](const char* flag, double value) {
    if (!(value >= 0 && value < 1))
      problems.push_back({flag, std::to_string(value) + " is out of range", "allowed is 0 or more, below 1"});
  };
  at_least("--steps", static_cast<double>(schedule.total_steps), 1);
  at_least("--context", static_cast<double>(context), 1);
  at_least("--batch", static_cast<double>(batch), 1);
  at_least("--accumulate", static_cast<double>(accumulation), 1);
  at_least("--warmup", static_cast<double>(schedule.warmup_steps), 0);
  at_least("--decay-steps", static_cast<double>(schedule.decay_steps), 0);
  at_least("--lr", schedule.peak, 0, true);
  at_least("--min-lr", schedule.minimum, 0);
  at_least("--eps", adamw.eps, 0, true);
  at_least("--weight-decay", adamw.weight_decay, 0);
  at_least("--clip", adamw.clip_norm, 0);
  at_least("--eval-every", static_cast<double>(eval_every), 0);
  at_least("--eval-tokens", static_cast<double>(eval_tokens), 1);
  at_least("--sample-every", static_cast<double>(sample_every), 0);
  at_least("--checkpoint-every", static_cast<double>(checkpoint_every), 0);
  below_one("--beta1", adamw.beta1);
  below_one("--beta2", adamw.beta2);
  // What a step holds must be countable; what it needs of memory is the planner's to say.
  constexpr int64_t kMost = int64_t{1} << 31;
  if (batch > kMost || context > kMost || accumulation > kMost || batch * context > kMost) {
    problems.push_back({"--batch", "times --context is more tokens than a forward pass can hold",
                        "use --accumulate for larger steps"});
  }
  return problems;
}

std::string to_text(const TrainingSample& sample) {
  if (!sample.source) return sample.text;
  return "reads:  " + *sample.source + "\nwrites: " + sample.text + "\nasked:  " + sample.target.value_or("");
}

double measure_step_seconds(Model& model, ThreadPool& pool, const Corpus& corpus, const Vocabulary& vocabulary,
                            const TrainConfig& config) {
  Trainer trainer(model, pool, trainer_options(config));
  const Sampler sampler(corpus.train(), config.context, config.batch, config.seed, config.examples, vocabulary);
  const std::vector<Batch> batches = batches_of_step(sampler, config, 1);
  std::vector<double> seconds;
  for (int i = 0; i < 4; ++i) {
    const auto start = Clock::now();
    trainer.accumulate(batches, 0);
    if (i > 0) seconds.push_back(seconds_since(start));  // the first one meets cold memory
  }
  return median(seconds);
}

std::function<bool()> save_now_and_then() {
  // From `saved` to the call after it, one save and one step have passed.
  return [saved = Clock::now(), wait = kBetweenSaves, after_save = false]() mutable {
    const Clock::time_point now = Clock::now();
    if (after_save) wait = std::max(kBetweenSaves, kTimesASave * (now - saved));
    after_save = now - saved >= wait;
    if (after_save) saved = now;
    return after_save;
  };
}

LoopResult run_training(Model& model, ThreadPool& pool, const Corpus& corpus, const Vocabulary& vocabulary,
                        const TrainConfig& config, const std::filesystem::path& run_folder, const Json& run,
                        const std::optional<FoundCheckpoint>& resume, double flops_per_token, const LoopHooks& hooks) {
  const auto note = [&](std::string line) {
    if (hooks.note) hooks.note(std::move(line));
  };
  TrainerOptions options = trainer_options(config);
  options.teacher = hooks.teacher;
  Trainer trainer(model, pool, options);
  TrainingState state{0, 0, run};
  if (resume) {
    load_checkpoint(*resume, model, trainer.optimizer(), hooks.io);
    state.step = resume->state.step;
    state.tokens = resume->state.tokens;
  } else {
    remove_checkpoints(run_folder);
  }
  const std::optional<int64_t> from = resume ? std::optional(state.step) : std::nullopt;
  MetricsWriter metrics(run_folder / "metrics.jsonl", from);
  MetricsWriter samples(run_folder / "samples.jsonl", from);
  TensorBoardWriter board(run_folder / "tensorboard");
  board.resumed(state.step +
                1);  // a run that was killed before its first checkpoint, or is overwritten, left events too

  const Sampler sampler(corpus.train(), config.context, config.batch, config.seed, config.examples, vocabulary);
  const int64_t total = config.schedule.total_steps;
  ProgressState shown;
  RouterWatch watch;
  LoopResult result;
  std::vector<double> rates;
  int64_t saved_at = resume ? state.step : -1;
  const auto begin = Clock::now();

  const auto save = [&] {
    if (saved_at == state.step) return;
    metrics.sync();
    samples.sync();
    save_checkpoint(run_folder, model, trainer.optimizer(), state, hooks.io);
    saved_at = state.step;
  };
  const auto evaluate_now = [&](bool whole) {
    return evaluate(model, trainer.inference_context(), corpus.val(), nullptr,
                    {.context = config.context,
                     .max_tokens = whole ? 0 : config.eval_tokens,
                     .batch_tokens = config.batch * config.context,
                     .examples = config.examples,
                     .vocabulary = &vocabulary,
                     .progress = {}})
        .loss;
  };

  while (state.step < total) {
    if (hooks.stop && hooks.stop->load(std::memory_order_relaxed)) {
      result.interrupted = true;
      break;
    }
    const int64_t step = state.step + 1;
    const auto started = Clock::now();
    const double lr = config.schedule.rate(step);
    StepResult done;
    try {
      done = trainer.step(batches_of_step(sampler, config, step),
                          static_cast<uint64_t>(state.step * config.accumulation), lr);
    } catch (const EnvironmentError& e) {
      const std::string kept = saved_at > 0 ? "the last good checkpoint, of step " + std::to_string(saved_at) +
                                                  ", is " + (run_folder / "checkpoint").string()
                                            : "there is no checkpoint yet";
      Problems problems;
      for (const Problem& p : e.problems())
        problems.push_back({"step " + std::to_string(step) + ": " + p.where, p.what + " (" + kept + ")", p.mend});
      throw EnvironmentError(problems.front().where, problems.front().what, problems.front().mend);
    }
    state.step = step;
    state.tokens += done.rows;
    ++result.steps_done;
    const double rate = static_cast<double>(done.rows) / seconds_since(started);
    rates.push_back(rate);
    result.loss = done.loss;

    Metrics record{{"step", static_cast<double>(step)},
                   {"tokens", static_cast<double>(state.tokens)},
                   {"loss", done.loss},
                   {"lr", lr},
                   {"grad_norm", done.gradient_norm},
                   {"tokens_per_second", rate},
                   {"flops_per_second", rate * flops_per_token},
                   {"seconds", seconds_since(begin)},
                   {"peak_memory_bytes", static_cast<double>(peak_resident_bytes())}};
    const bool last = step == total;
    if (last || due(config.eval_every, step)) {
      result.val_loss = evaluate_now(last);
      record.emplace_back("val_loss", *result.val_loss);
      shown.val_loss = *result.val_loss;
    }
    append_router_metrics(done.routers, record);
    metrics.append(record);
    std::vector<std::pair<std::string, double>> scalars(record.begin() + 1, record.end());
    board.scalars(step, scalars);
    shown.step = step;
    shown.loss = done.loss;
    shown.tokens_per_second = rate;
    if (hooks.progress) hooks.progress(shown);
    if (const auto warning = watch.step(done.routers)) note("warning: step " + std::to_string(step) + ": " + *warning);
    if (hooks.sample && (last || due(config.sample_every, step))) {
      const TrainingSample sample = hooks.sample(model);
      Json line{{"step", step}, {"text", sample.text}};
      if (sample.source) line["source"] = *sample.source;
      if (sample.target) line["target"] = *sample.target;
      samples.append(line);
      if (!last) note("step " + std::to_string(step) + ":\n" + to_text(sample));
    }
    const bool asked = hooks.save_due && hooks.save_due();
    if (last || asked || due(config.checkpoint_every, step)) save();
  }
  save();
  result.step = state.step;
  result.tokens = state.tokens;
  result.seconds = seconds_since(begin);
  result.tokens_per_second = median(rates);
  result.activation_peak_bytes = static_cast<int64_t>(trainer.activation_peak_bytes());
  return result;
}

}  // namespace transept
