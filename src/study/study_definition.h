// A study as data: which models are made and how, what is measured of them, and what must be equal between them. The
// studies of the program and those of its users are files of this one form (docs/studies.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "spec/arch_spec.h"
#include "study/measurement.h"
#include "study/model_step.h"
#include "train/loop.h"

namespace transept {

// What is asserted to be equal between all models of a study that are trained from random weights.
enum class Equal { kParameters, kFlops, kTokens, kDataOrder, kInitialization };
template <>
struct EnumNames<Equal> {
  static constexpr std::array<std::string_view, 5> kNames{"parameters", "flops", "tokens", "data_order",
                                                          "initialization"};
};

// One combination of axis values: how its model is made (no step: it has none) and what is measured.
struct DefinedCell {
  Json axes;      // name to value, a string or a number
  Json recipe;    // the steps as a document: equal recipes are one model
  Json measures;  // the measurements as a document
  std::vector<ModelStep> steps;
  std::vector<Measurement> measurements;
};

enum class StudySize { kFull, kQuick };
template <>
struct EnumNames<StudySize> {
  static constexpr std::array<std::string_view, 2> kNames{"full", "quick"};
};

struct StudyDefinition {
  std::string name, title, question;
  StudySize size = StudySize::kFull;
  Json base;                  // spec document
  std::string tokenizer;      // as `train --tokenizer`
  double val_fraction = 0.1;  // of the text: held out, and what perplexity is measured on
  TrainConfig training;
  int64_t seeds = 1;              // 0 to seeds - 1
  std::map<Equal, double> equal;  // and the largest relative difference that is allowed
  std::vector<DefinedCell> cells;
  Json charts, figures;  // for the page, as it reads them

  // Of the first model that is trained.
  int64_t vocab_size() const;
  // The spec that a step trains: its changes laid over the base. InputError as spec_from_json.
  ArchSpec trained_spec(const TrainStep& step) const;
  // The configuration with the step's own options.
  TrainConfig trained_config(const TrainStep& step) const;
};

// InputError lists every problem of the document, each with its path; `where` names the document.
StudyDefinition read_study_definition(const Json& document, StudySize size, const std::string& where);

}  // namespace transept
