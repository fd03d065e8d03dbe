// Runs a study: every cell at every seed, once. What is finished stays finished (study_store.h), so a study that was
// killed goes on where it was and ends with the same results, save for speeds, which are measured.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "base/thread_pool.h"
#include "data/corpus.h"
#include "study/machine.h"
#include "study/study_definition.h"
#include "text/tokenizer.h"
#include "train/progress.h"

namespace transept {

struct StudyRun {
  std::filesystem::path out;  // study.sqlite, models/, results.json
  std::string data;           // what the text is, for a person
  std::string command;        // that repeats it
  Machine machine;
  // Of the whole study, in thousandths; `label` says what it is at.
  std::function<void(const ProgressState&)> progress;
  std::function<void(std::string)> note;
  const std::atomic<bool>* stop = nullptr;
};

// The thousandths that progress counts to.
inline constexpr int64_t kStudyProgress = 1000;

// What results.json holds, as study_document.h reads it; it is written when all cells are done. Null when the study was
// told to stop before. InputError when its models are not equal where they must be, or the folder holds another study.
Json run_study(const StudyDefinition& definition, ThreadPool& pool, const Corpus& corpus, const Tokenizer& tokenizer,
               const StudyRun& run);

}  // namespace transept
