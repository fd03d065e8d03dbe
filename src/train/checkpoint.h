// Checkpoints of a training run. DIR/checkpoint is a model folder (weights, config, tokenizer) that also holds the
// optimizer's moments and the state of the run; DIR/checkpoint.previous is the one before. A checkpoint is written
// aside, synced, and put in place in one step: whenever the process is killed, one of the two is whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "nn/model.h"
#include "train/optimizer.h"

namespace transept {

struct TrainingState {
  int64_t step = 0;    // updates done
  int64_t tokens = 0;  // tokens read
  Json run;            // everything that determines the numbers: spec, data, options
};

// How a model and what belongs to it (its tokenizer) are written into a folder and read back; the form is not this
// layer's business.
struct ModelIo {
  std::function<void(const Model&, const std::filesystem::path&)> save;
  std::function<void(Model&, const std::filesystem::path&)> load;
};

void save_checkpoint(const std::filesystem::path& run_folder, const Model& model, AdamW& optimizer,
                     const TrainingState& state, const ModelIo& io);

// The newest whole checkpoint of the run; nothing when there is none. `note` receives a line when the newest is damaged
// and the one before is used.
struct FoundCheckpoint {
  std::filesystem::path folder;
  TrainingState state;
};
std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& run_folder,
                                               const std::function<void(std::string)>& note);

// All of them: before a run starts anew, since a resume must not take another run's for its own.
void remove_checkpoints(const std::filesystem::path& run_folder);

// Weights and moments, bit for bit.
void load_checkpoint(const FoundCheckpoint& found, Model& model, AdamW& optimizer, const ModelIo& io);

}  // namespace transept
