// The models of a study: made by their recipes, each trained part once, kept in DIR/models.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "data/corpus.h"
#include "nn/model.h"
#include "study/study_definition.h"
#include "study/study_store.h"
#include "text/tokenizer.h"

namespace transept {

// Training was asked to stop; what it had done is saved.
struct StudyStopped {};

class StudyModels {
 public:
  struct Hooks {
    // Of the training that runs, and the FLOPs it has done; and when it is done.
    std::function<void(const ProgressState&, double flops)> progress;
    std::function<void(double flops)> trained;
    std::function<void(std::string)> note;
    const std::atomic<bool>* stop = nullptr;
  };
  StudyModels(const StudyDefinition& definition, const std::filesystem::path& folder, StudyStore& store,
              ThreadPool& pool, const Corpus& corpus, const Tokenizer& tokenizer, Hooks hooks);

  // The cell's model at that seed; valid until the next call. Trains what is not trained yet. StudyStopped when it was
  // told to stop; InputError when a step cannot be done (heads that do not divide).
  const Model& make(const DefinedCell& cell, int64_t seed);
  // Of what the recipe's first steps make, in DIR/models and in the store.
  static std::string name_of(const Json& recipe, size_t steps, int64_t seed);

 private:
  // A step of a recipe that is due, and the model that the one before left.
  struct Making {
    const Json& recipe;
    size_t step;
    int64_t seed;
    std::unique_ptr<Model> model;
  };
  std::unique_ptr<Model> apply(const TrainStep& step, Making making);
  std::unique_ptr<Model> apply(const KvHeadsStep& step, Making making);
  std::unique_ptr<Model> apply(const UptrainStep& step, Making making);
  std::unique_ptr<Model> apply(const StretchStep& step, Making making);
  // Trains the model by the step's configuration, and puts it down.
  std::unique_ptr<Model> trained(const ModelStep& step, Making making, const Teacher& teacher = {});

  const StudyDefinition& definition_;
  std::filesystem::path folder_;
  StudyStore& store_;
  ThreadPool& pool_;
  const Corpus& corpus_;
  const Tokenizer& tokenizer_;
  Vocabulary vocabulary_;
  Hooks hooks_;
  std::string current_name_;  // of current_
  std::unique_ptr<Model> current_;
};

// The configuration of a step that trains; nothing for the others.
std::optional<TrainConfig> training_of(const StudyDefinition& definition, const ModelStep& step, int64_t seed);
// Of a step of training.
double flops_per_step(const ArchSpec& spec, const TrainConfig& config);

}  // namespace transept
