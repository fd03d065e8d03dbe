// transept train: a spec and text to a trained model.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "base/stop_request.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/memory_watch.h"
#include "cli/model_argument.h"
#include "cli/training_samples.h"
#include "convert/model_folder.h"
#include "data/pairs.h"
#include "data/tokenizer_choice.h"
#include "kernels/isa.h"
#include "plan/plan.h"
#include "study/model_io.h"
#include "study/training_report.h"
#include "train/loop.h"
#include "train/metrics.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

struct Options {
  std::string spec, out, tokenizer, init, sample_prompt;
  std::vector<std::string> data, val_data;
  double val_fraction = 0.1;
  double minutes = 0;
  bool resume = false, overwrite = false, lines = false, report = false;
  TrainConfig config;
  std::map<std::string, CLI::Option*> flags;  // of the configuration, and sample-prompt
};

// Whether the default follows from others (fill_defaults).
bool computed_default(std::string_view name) {
  return name == "objective" || name == "context" || name == "warmup" || name == "min-lr" || name == "decay-steps";
}

// Adds one flag a field.
struct AddFlags {
  CLI::App* sub;
  Options& o;
  template <class T>
  void operator()(const char* name, T& member, const char* help, bool) {
    const std::string flag = std::string("--") + name;
    if constexpr (std::is_same_v<T, bool>) {
      o.flags[name] = sub->add_flag(flag, member, help);
    } else if constexpr (std::is_same_v<T, Recompute>) {
      o.flags[name] = add_recompute(sub, member);
    } else if constexpr (std::is_same_v<T, ScheduleKind>) {
      o.flags[name] = sub->add_option_function<std::string>(
          flag,
          [&member](const std::string& text) {
            const auto kind = schedule_from_name(text);
            if (!kind)
              throw CLI::ValidationError("--schedule",
                                         "\"" + text + "\" is unknown; known are constant, linear, cosine and wsd");
            member = *kind;
          },
          help);
    } else if constexpr (std::is_same_v<T, Objective>) {
      o.flags[name] = sub->add_option_function<std::string>(
          flag, [&member](const std::string& text) { member = parse_objective(text); }, help);
    } else {
      o.flags[name] = sub->add_option(flag, member, help);
      if (!computed_default(name)) o.flags[name]->capture_default_str();
    }
  }
};

// Whether the person gave the flag.
bool given(const Options& o, const char* name) { return o.flags.at(name)->count() > 0; }

void fill_defaults(Options& o, const ArchSpec& spec) {
  constexpr int64_t kUsualContext = 1024;
  TrainConfig& c = o.config;
  if (!given(o, "objective")) {
    const std::vector<fs::path> data(o.data.begin(), o.data.end());
    c.examples.objective = default_objective(stacks_of(spec.topology), are_pairs(data));
  }
  if (!given(o, "context")) c.context = std::min(spec.max_position_embeddings, kUsualContext);
  const Schedule usual = usual_schedule(c.schedule.kind, c.schedule.peak, c.schedule.total_steps);
  if (!given(o, "warmup")) c.schedule.warmup_steps = usual.warmup_steps;
  if (!given(o, "min-lr")) c.schedule.minimum = usual.minimum;
  if (!given(o, "decay-steps")) c.schedule.decay_steps = usual.decay_steps;
}

void check_options(const Options& o) {
  Problems problems = o.config.check();
  if (!(o.val_fraction > 0 && o.val_fraction < 1))
    problems.push_back(
        {"--val-fraction", fmt::format("{} is out of range", o.val_fraction), "allowed is more than 0, below 1"});
  if (!(o.minutes >= 0) || o.minutes > 1e6)
    problems.push_back({"--minutes", fmt::format("{} is out of range", o.minutes), "allowed is 0 (off) or more"});
  if (o.minutes > 0 && given(o, "steps")) problems.push_back({"--minutes", "and --steps cannot both be given", ""});
  if (o.resume && o.overwrite) problems.push_back({"--resume", "and --overwrite cannot both be given", ""});
  throw_if_any(std::move(problems));
}

// What determines the numbers of a run, beside its configuration.
Json describe_run(const Options& o, const ArchSpec& spec, const Corpus& corpus, const Tokenizer& tokenizer) {
  return {{"spec", spec_to_json(spec)},
          {"config", config_to_json(o.config)},
          {"tokenizer", {{"kind", tokenizer.kind()}, {"choice", o.tokenizer}}},
          {"data",
           {{"train_tokens", corpus.train().tokens()},
            {"val_tokens", corpus.val().tokens()},
            {"train", fingerprint(corpus.train())},
            {"val", fingerprint(corpus.val())}}}};
}

// Compares flags given now with a recorded configuration: fixed ones must agree, the others replace it.
struct MergeFlags {
  const Options& o;
  const Json &now, &recorded;
  Json& merged;
  Problems& problems;
  template <class T>
  void operator()(const char* name, T&, const char*, bool fixed) {
    if (!given(o, name)) return;
    if (fixed && now.at(name) != recorded.at(name)) {
      problems.push_back({std::string("--") + name,
                          "is " + now.at(name).dump() + ", but the run that is resumed has " + recorded.at(name).dump(),
                          "leave it out, or start another run"});
    } else {
      merged[name] = now.at(name);
    }
  }
};

// Takes the configuration of the run that is resumed; flags given now may only change what does not determine its
// numbers.
void adopt_config(Options& o, const FoundCheckpoint& found, bool seed_given) {
  const Json now = config_to_json(o.config), recorded = found.state.run.at("config");
  TrainConfig config = config_from_json(recorded, found.folder.string());
  Json merged = recorded;
  Problems problems;
  MergeFlags merge{o, now, recorded, merged, problems};
  config.fields(merge);
  if (seed_given && o.config.seed != config.seed) {
    problems.push_back({"--seed", fmt::format("is {}, but the run that is resumed has {}", o.config.seed, config.seed),
                        "leave it out, or start another run"});
  }
  throw_if_any(std::move(problems));
  o.config = config_from_json(merged, found.folder.string());
  throw_if_any(o.config.check());
}

void check_same(const Json& recorded, const Json& now) {
  Problems problems;
  const Json &had = recorded.at("tokenizer").at("choice"), &asked = now.at("tokenizer").at("choice");
  if (asked != "" && asked != had) {
    problems.push_back(
        {"--tokenizer",
         "is " + asked.dump() + ", but the run that is resumed was started with " + (had == "" ? "none" : had.dump()),
         "leave it out, or start another run"});
  }
  if (recorded.at("spec") != now.at("spec"))
    problems.push_back({"SPEC", "is not the one of the run that is resumed", "give that one, or start another run"});
  if (recorded.at("data") != now.at("data"))
    problems.push_back({"--data", "gives other tokens than the run that is resumed was trained on",
                        "give the same text and split, or start another run"});
  throw_if_any(std::move(problems));
}

PlanOptions plan_options(const TrainConfig& c) {
  PlanOptions p;
  p.context = c.context;
  p.batch = c.batch;
  p.recompute = c.recompute;
  return p;
}

int run(Options o, const Globals& globals, bool seed_given) {
  o.config.seed = globals.seed;
  ArchSpec spec = resolve_spec(o.spec);
  const auto say = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };

  std::optional<FoundCheckpoint> resume;
  std::error_code code;
  if (!o.overwrite && fs::is_directory(o.out, code)) resume = find_checkpoint(o.out, say);
  if (resume && !o.resume) {
    throw InputError(o.out, fmt::format("already holds a run, at step {}", resume->state.step),
                     "go on with --resume, start it again with --overwrite, or name another folder");
  }
  if (o.resume && !resume) say(o.out + " holds no checkpoint yet: starting from the beginning");
  fill_defaults(o, spec);
  check_options(o);
  if (resume) adopt_config(o, *resume, seed_given);
  if (o.config.context > spec.max_position_embeddings) {
    throw InputError("--context",
                     fmt::format("{} is more than the spec's max_position_embeddings of {}", o.config.context,
                                 spec.max_position_embeddings),
                     "use a shorter context, or raise it in the spec");
  }

  const ExampleOptions& examples = o.config.examples;
  check_objective(examples.objective, stacks_of(spec.topology));
  if (examples.objective != Objective::kCausal && given(o, "sample-prompt")) {
    throw InputError("--sample-prompt", "applies to the objective causal only",
                     "leave it out: samples of the others are of the held-out part");
  }
  const Unit unit = unit_of(examples, o.lines);
  const std::vector<fs::path> data(o.data.begin(), o.data.end()), val_data(o.val_data.begin(), o.val_data.end());
  TextFiles texts = read_texts(data);
  TextFiles val_texts = val_data.empty() ? TextFiles{} : read_texts(val_data);
  for (const TextFiles* t : {&texts, &val_texts}) {
    for (const fs::path& p : t->skipped) say(p.string() + ": left out, it is empty or not text");
  }
  const auto tokenizer =
      resume ? load_tokenizer(resume->folder)
             : choose_tokenizer(o.tokenizer, spec.vocab_size, texts, examples.objective, o.config.context);
  const Vocabulary vocabulary = vocabulary_of(*tokenizer);
  check_examples(examples, vocabulary, o.config.context);
  const Corpus corpus(texts, val_data.empty() ? nullptr : &val_texts, *tokenizer,
                      {.unit = unit,
                       .context = o.config.context,
                       .val_fraction = o.val_fraction,
                       .window = window_tokens(examples.objective, o.config.context, vocabulary)});
  texts = {};
  val_texts = {};
  Json run_record = describe_run(o, spec, corpus, *tokenizer);
  if (resume) {
    check_same(resume->state.run, run_record);
    run_record["tokenizer"] = resume->state.run.at("tokenizer");
  }
  make_writable_folder(o.out);

  const Plan plan = make_plan(spec, plan_options(o.config));
  ThreadPool pool = globals.pool();
  const MemoryWatch watch(pool);
  Model model(spec, true);
  model.parameters().initialize(spec, o.config.seed, pool);
  if (!o.init.empty()) load_weights(model, o.init);
  say(fmt::format("{}: {} parameters, {} training tokens, {} held out, {} threads", spec.name,
                  model.parameters().count(), corpus.train().tokens(), corpus.val().tokens(), pool.threads()));
  if (o.minutes > 0 && !resume) {
    const double seconds = measure_step_seconds(model, pool, corpus, vocabulary, o.config);
    o.config.schedule.total_steps = std::max<int64_t>(1, static_cast<int64_t>(o.minutes * 60 / seconds));
    fill_defaults(o, spec);
    run_record["config"] = config_to_json(o.config);
    say(fmt::format("{:.0f} ms a step: {} steps in {} minutes", 1e3 * seconds, o.config.schedule.total_steps,
                    o.minutes));
  }

  catch_stop_signals();
  LoopHooks hooks;
  hooks.io = folder_io(*tokenizer);
  hooks.sample = [&](const Model& m) {
    return examples.objective == Objective::kCausal
               ? sample_text(m, pool, *tokenizer, o.sample_prompt)
               : sample_example(m, pool, *tokenizer, vocabulary, corpus.val(), o.config);
  };
  Progress progress(o.config.schedule.total_steps, resume ? resume->state.step : 0);
  hooks.progress = [&](const ProgressState& state) { progress.update(state); };
  hooks.note = [&](const std::string& line) { progress.note(line); };
  hooks.stop = &stop_requested();
  const double flops_per_token = static_cast<double>(plan.flops.train_per_token);
  const LoopResult r =
      run_training(model, pool, corpus, vocabulary, o.config, o.out, run_record, resume, flops_per_token, hooks);
  progress.finish();
  if (r.interrupted) {
    say(fmt::format("stopped after step {} of {}, saved; --resume goes on", r.step, o.config.schedule.total_steps));
  }
  const int64_t peak = watch.peak();

  const int64_t block = model.parameters().block_size() * static_cast<int64_t>(sizeof(float));
  Json summary{{"out", o.out},
               {"checkpoint", (fs::path(o.out) / "checkpoint").string()},
               {"step", r.step},
               {"steps_done", r.steps_done},
               {"tokens", r.tokens},
               {"loss", r.loss},
               {"val_loss", r.val_loss ? Json(*r.val_loss) : Json()},
               {"seconds", r.seconds},
               {"tokens_per_second", r.tokens_per_second},
               {"flops_per_second", r.tokens_per_second * flops_per_token},
               {"interrupted", r.interrupted},
               {"parameters", {{"total", model.parameters().count()}}},
               {"flops",
                {{"train_per_step",
                  flops_per_token * static_cast<double>(o.config.batch * o.config.context * o.config.accumulation)}}},
               {"memory",
                {{"weights", block},
                 {"gradients", block},
                 {"optimizer", 2 * block},
                 {"activations", r.activation_peak_bytes},
                 {"peak_training", peak}}},
               {"plan", to_json(plan)}};
  if (o.report && !r.interrupted) {
    TrainingReport report;
    report.spec = spec_to_json(spec);
    report.plan = summary["plan"];
    report.measured = summary;
    report.tokens_per_step = static_cast<double>(o.config.batch * o.config.context * o.config.accumulation);
    report.metrics = read_metrics(fs::path(o.out) / "metrics.jsonl");
    for (const Json& s : read_metrics(fs::path(o.out) / "samples.jsonl")) {
      const std::string title = fmt::format("After step {}", s.at("step").get<int64_t>());
      TrainingSample sample{s.at("text").get<std::string>(), {}, {}};
      if (s.contains("source")) {
        sample.source = s.at("source").get<std::string>();
        sample.target = s.at("target").get<std::string>();
        report.samples.push_back({title, "", to_text(sample)});
      } else {
        // Those of before a resumption may have had another prompt.
        const size_t prompt = sample.text.starts_with(o.sample_prompt) ? o.sample_prompt.size() : 0;
        report.samples.push_back({title, sample.text.substr(0, prompt), sample.text.substr(prompt)});
      }
    }
    report.data = fmt::format("{}", fmt::join(o.data, ", "));
    report.command = globals.command_line;
    report.machine = this_machine(instruction_set_name(), build_commit());
    const fs::path page = fs::path(o.out) / "report.html";
    write_training_report(page, report);
    summary["report"] = page.string();
    say("report: " + page.string());
  }
  if (globals.json) {
    print_json(summary);
  } else if (r.steps_done == 0 && !r.interrupted) {
    fmt::print("step {}: nothing is left to do; more --steps go further; checkpoint in {}\n", r.step,
               (fs::path(o.out) / "checkpoint").string());
  } else if (!r.interrupted) {
    fmt::print("step {}: loss {:.4f}, validation loss {:.4f}, {:.0f} tokens/s, {:.1f} GFLOP/s; checkpoint in {}\n",
               r.step, r.loss, r.val_loss.value_or(NAN), r.tokens_per_second,
               r.tokens_per_second * flops_per_token * 1e-9, (fs::path(o.out) / "checkpoint").string());
  }
  return r.interrupted ? 130 : 0;
}

}  // namespace

void register_train(Registry& registry) {
  auto o = std::make_shared<Options>();
  o->config.schedule.total_steps = 1000;
  Globals& globals = registry.globals;
  auto self = std::make_shared<CLI::App*>(nullptr);
  CLI::App* sub =
      registry.add("train", "train a model on text; stops cleanly on Ctrl-C (exit code 130) and goes on with --resume",
                   [o, &globals, self] { return run(*o, globals, (*self)->get_option("--seed")->count() > 0); });
  *self = sub;
  sub->add_option("SPEC", o->spec, "preset, spec file or model folder")->required();
  sub->add_option("--data", o->data,
                  "text files and folders of them; for seq2seq, pairs: .tsv (source TAB target) or .jsonl")
      ->required();
  sub->add_option("--val-data", o->val_data, "held-out text (default: the last part of --data)");
  sub->add_option("--val-fraction", o->val_fraction, "part of --data that is held out")->capture_default_str();
  sub->add_option("--out", o->out, "run folder: metrics.jsonl, tensorboard/, samples.jsonl, checkpoint/")->required();
  sub->add_flag("--resume", o->resume, "go on from the run's last checkpoint, as if it had never stopped");
  sub->add_flag("--overwrite", o->overwrite, "start again in a folder that holds a run");
  sub->add_option("--init", o->init, "model folder whose weights to start from");
  sub->add_option("--tokenizer", o->tokenizer,
                  "byte, bpe, bpe:SIZE, or a folder or file (default: byte for vocabularies up to 1024, else bpe)");
  sub->add_flag("--lines", o->lines, "every line is a document of its own");
  sub->add_option("--minutes", o->minutes, "choose --steps so that training takes about this long");
  o->sample_prompt = "\n";
  o->flags["sample-prompt"] =
      sub->add_option("--sample-prompt", o->sample_prompt, "causal: what samples continue (default: a line break)");
  sub->add_flag("--report", o->report,
                "write a page with curves, plan beside measurement, and samples to OUT/report.html");
  AddFlags flags{sub, *o};
  o->config.fields(flags);
}

}  // namespace transept
