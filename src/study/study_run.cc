#include "study/study_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/problem.h"
#include "study/study_equality.h"
#include "study/study_models.h"
#include "study/study_results.h"
#include "study/study_store.h"

namespace transept {
namespace {

std::string label_of(const DefinedCell& cell, int64_t seed) {
  std::string label;
  for (const auto& [name, value] : cell.axes.items())
    label += fmt::format("{} {}, ", name, value.is_string() ? value.get<std::string>() : value.dump());
  return fmt::format("{}seed {}", label, seed);
}

Json to_json(const Measured& measured) {
  Json result{{"metrics", Json::object()}};
  for (const auto& [name, value] : measured.metrics)
    result["metrics"][name] = std::isfinite(value) ? Json(value) : Json();
  for (const auto& [name, curve] : measured.curves) result["curves"][name] = {{"x", curve.x}, {"y", curve.y}};
  for (const MeasuredMap& map : measured.maps)
    result["maps"].push_back(
        {{"name", map.name}, {"rows", map.rows}, {"columns", map.columns}, {"values", map.values}});
  return result;
}

// How far a study is, in FLOPs: of training, and of scoring text. What else is measured is over in moments.
class StudyProgress {
 public:
  StudyProgress(const StudyDefinition& definition, const Corpus& corpus, const StudyRun& run)
      : definition_(definition), corpus_(corpus), run_(run) {}

  void count(const StudyModels& models, const StudyStore& store) {
    std::set<std::string> counted;  // trainings, each once however many cells share it
    for (int64_t seed = 0; seed < definition_.seeds; ++seed) {
      for (const DefinedCell& cell : definition_.cells) {
        const double work = scoring(cell);
        total_ += work;
        if (store.cell(cell, seed)) done_ += work;
        for (size_t step = 0; step < cell.steps.size(); ++step) {
          const auto config = training_of(definition_, cell.steps[step], seed);
          const std::string name = models.name_of(cell.recipe, step + 1, seed);
          if (!config || !counted.insert(name).second) continue;
          const double training =
              static_cast<double>(config->schedule.total_steps) * flops_per_step(spec_of(cell), *config);
          total_ += training;
          if (store.has_model(name)) done_ += training;
        }
      }
    }
  }
  void begin(const DefinedCell& cell, int64_t seed) {
    shown_ = {.label = label_of(cell, seed)};
    show(0);
  }
  void train(const ProgressState& state, double flops) {
    shown_.loss = state.loss;
    shown_.tokens_per_second = state.tokens_per_second;
    show(flops);
  }
  void trained(double flops) { done_ += flops; }
  void end(const DefinedCell& cell) {
    done_ += scoring(cell);
    show(0);
  }
  // What was counted is an estimate where a conversion changes the work.
  void finish() {
    done_ = total_;
    show(0);
  }

 private:
  ArchSpec spec_of(const DefinedCell& cell) const {
    return definition_.trained_spec(std::get<TrainStep>(cell.steps.front()));
  }
  double scoring(const DefinedCell& cell) const {
    double windows = 0;  // in which each token is read, over all measurements
    for (const Measurement& m : cell.measurements) {
      if (const auto* p = std::get_if<PerplexityMeasurement>(&m))
        windows += static_cast<double>(p->context) / static_cast<double>(p->advance());
    }
    if (windows == 0) return 0;
    TrainConfig pass;  // a third of a step of training
    pass.context = 1, pass.batch = corpus_.val().tokens();
    return windows * flops_per_step(spec_of(cell), pass) / 3;
  }
  void show(double extra) {
    const double share = total_ > 0 ? std::min(1.0, (done_ + extra) / total_) : 1;
    shown_.step = static_cast<int64_t>(share * static_cast<double>(kStudyProgress));
    if (run_.progress) run_.progress(shown_);
  }

  const StudyDefinition& definition_;
  const Corpus& corpus_;
  const StudyRun& run_;
  double total_ = 0, done_ = 0;
  ProgressState shown_;
};

}  // namespace

Json run_study(const StudyDefinition& definition, ThreadPool& pool, const Corpus& corpus, const Tokenizer& tokenizer,
               const StudyRun& run) {
  const Vocabulary vocabulary = vocabulary_of(tokenizer);
  const Json equal = check_equality(definition, pool, corpus, vocabulary);
  for (const Json& fact : equal) {
    if (run.note)
      run.note(fmt::format("equal between {} models: {}, {}", fact.at("count").dump(),
                           fact.at("what").get<std::string>(), fact.at("value").get<std::string>()));
  }
  make_writable_folder(run.out);
  StudyStore store(run.out / "study.sqlite", {{"base", definition.base},
                                              {"tokenizer", definition.tokenizer},
                                              {"training", config_to_json(definition.training)},
                                              {"train", fingerprint(corpus.train())},
                                              {"val", fingerprint(corpus.val())}});
  StudyProgress progress(definition, corpus, run);
  StudyModels models(definition, run.out / "models", store, pool, corpus, tokenizer,
                     {.progress = [&](const ProgressState& state, double flops) { progress.train(state, flops); },
                      .trained = [&](double flops) { progress.trained(flops); },
                      .note = run.note,
                      .stop = run.stop});
  progress.count(models, store);
  for (int64_t seed = 0; seed < definition.seeds; ++seed) {
    for (const DefinedCell& cell : definition.cells) {
      if (store.cell(cell, seed)) continue;
      if (run.stop && run.stop->load(std::memory_order_relaxed)) return {};
      progress.begin(cell, seed);
      const auto begin = std::chrono::steady_clock::now();
      Json result;
      try {
        const Model* model = cell.steps.empty() ? nullptr : &models.make(cell, seed);
        Measured measured;
        for (const Measurement& m : cell.measurements)
          measure(
              m,
              {pool, corpus, tokenizer, vocabulary, definition.training.examples, model, static_cast<uint64_t>(seed)},
              measured);
        result = to_json(measured);
      } catch (const InputError& e) {
        result = {{"metrics", Json::object()}, {"refused", e.what()}};
      } catch (const StudyStopped&) {
        return {};
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      store.put_cell(cell, seed, result, seconds.count());
      progress.end(cell);
    }
  }
  progress.finish();
  const Json results = study_results(definition, equal, store, run);
  write_file_atomic(run.out / "results.json", results.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  return results;
}

}  // namespace transept
