// MODEL on the command line: a preset, a spec file, or a model folder (or a run folder, whose checkpoint is meant).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nn/model.h"
#include "text/tokenizer.h"

namespace transept {

// The spec alone; needs no weights.
ArchSpec resolve_spec(const std::string& argument);

// The model folder that the argument means; InputError when it has no weights.
std::filesystem::path resolve_folder(const std::string& argument);

struct LoadedModel {
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;  // null when the folder has none
  std::vector<int32_t> end_tokens;       // that its configuration names
  std::filesystem::path folder;
  double load_seconds = 0;  // of the weights
};
// Weights too; InputError when the argument has none.
LoadedModel load_model_argument(const std::string& argument);

// The folder's tokenizer; InputError when it has none.
const Tokenizer& require_tokenizer(const LoadedModel& loaded, const std::string& argument);

// "1,2,3" as token ids; `flag` names it in errors.
std::vector<int32_t> parse_tokens(const std::string& text, const std::string& flag);

}  // namespace transept
