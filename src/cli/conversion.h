// A conversion between architectures as `transept convert` runs it: calibrated and recovered on the training part of a
// text, measured on the held-out part.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "convert/layer_place.h"
#include "data/batch.h"
#include "nn/model.h"
#include "study/conversion_receipt.h"

namespace transept {

// What every conversion can be given.
struct ConversionOptions {
  std::vector<std::string> data;
  int64_t context = 0;  // 0: the model's longest, at most 1024
  bool lines = false;
  int64_t recover_steps = 0;
  double recover_lr = 0;  // 0: what suits most (conversion.cc)
  int64_t recover_batch = 16;
  std::optional<double> recover_teacher;  // unset: what suits most (conversion.cc)
  bool any() const {
    return !data.empty() || context > 0 || lines || recover_steps > 0 || recover_lr != 0 || recover_teacher;
  }
};
void add_conversion_options(CLI::App* sub, ConversionOptions& options);
// Problems of the options among themselves.
Problems check(const ConversionOptions& options);

struct Conversion {
  Json description;                // what is done, by the names of its options
  ArchSpec spec;                   // afterwards
  std::vector<LayerPlace> layers;  // that it changes, and that it can change one by one
  // Sees text of the training part before the model is converted; null: needs none.
  std::function<void(const Model& source, const OpContext& op, const Batch& batch)> calibrate;
  std::function<std::unique_ptr<Model>(const Model& source, bool trainable)> convert;
  std::function<std::unique_ptr<Model>(const Model& source, const LayerPlace& place)> convert_layer;
};

struct Converted {
  std::unique_ptr<Model> model;
  ConversionReceipt receipt;
  bool interrupted = false;  // during the recovery
};

// Converts the model of `source`. A recovery keeps its checkpoints in recovery_folder(out) of the folder that is being
// made; one that was stopped there, of the same request, is gone on with.
Converted run_conversion(Conversion conversion, const std::filesystem::path& source, const ConversionOptions& options,
                         const Globals& globals, const std::filesystem::path& out);
std::filesystem::path recovery_folder(const std::filesystem::path& out);
bool recovery_can_go_on(const std::filesystem::path& out);
// When the model is written: leaves the metrics, as recovery.jsonl, where there was a recovery.
void end_recovery(const std::filesystem::path& out, bool recovered);

}  // namespace transept
