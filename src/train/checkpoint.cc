#include "train/checkpoint.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "ckpt/safetensors.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr const char* kStateFile = "training_state.safetensors";
constexpr const char* kStateKey = "training_state";

struct Names {
  fs::path current, previous, partial;
  explicit Names(const fs::path& run)
      : current(run / "checkpoint"), previous(run / "checkpoint.previous"), partial(run / "checkpoint.partial") {}
};

TrainingState read_state(const fs::path& folder) {
  const SafetensorsFile file(folder / kStateFile);
  const std::string where = (folder / kStateFile).string();
  const auto at = file.metadata().find(kStateKey);
  if (at == file.metadata().end()) throw InputError(where, "holds no training state");
  const Json document = parse_json(at->second, where);
  try {
    return {document.at("step").get<int64_t>(), document.at("tokens").get<int64_t>(), document.at("run")};
  } catch (const Json::exception&) {
    throw InputError(where, "holds a damaged training state");
  }
}

}  // namespace

void save_checkpoint(const fs::path& run_folder, const Model& model, AdamW& optimizer, const TrainingState& state,
                     const ModelIo& io) {
  const Names names(run_folder);
  fs::remove_all(names.partial);
  make_writable_folder(names.partial);
  io.save(model, names.partial);
  std::vector<TensorToStore> tensors;
  for (const Parameters::Entry& e : model.parameters().entries()) {
    tensors.push_back({"m." + e.decl.name, DType::kF32, e.decl.shape, optimizer.first_moments().data() + e.offset});
    tensors.push_back({"v." + e.decl.name, DType::kF32, e.decl.shape, optimizer.second_moments().data() + e.offset});
  }
  const Json document{{"step", state.step}, {"tokens", state.tokens}, {"run", state.run}};
  write_safetensors(names.partial / kStateFile, std::move(tensors), {{"format", "pt"}, {kStateKey, document.dump()}});
  replace_folder_atomic(names.partial, names.current, names.previous);
}

std::optional<FoundCheckpoint> find_checkpoint(const fs::path& run_folder,
                                               const std::function<void(std::string)>& note) {
  const Names names(run_folder);
  // A kill between the exchange and the renaming leaves the former checkpoint under the partial name.
  std::string damage;
  for (const fs::path& folder : {names.current, names.previous, names.partial}) {
    if (!fs::exists(folder / kStateFile)) {
      if (folder != names.partial && fs::exists(folder) && damage.empty())
        damage = (folder / kStateFile).string() + ": no such file";
      continue;
    }
    try {
      FoundCheckpoint found{folder, read_state(folder)};
      const SafetensorsCheckpoint weights(folder);  // throws when they are not whole
      if (!damage.empty() && note) note(damage + "; going on from " + folder.string());
      return found;
    } catch (const InputError& e) {
      if (damage.empty()) damage = e.what();
    }
  }
  if (!damage.empty())
    throw InputError(run_folder.string(), "holds no whole checkpoint (" + damage + ")",
                     "start again in another folder");
  return std::nullopt;
}

void remove_checkpoints(const fs::path& run_folder) {
  const Names names(run_folder);
  for (const fs::path& folder : {names.partial, names.previous, names.current}) {
    std::error_code code;
    fs::remove_all(folder, code);
    if (code) throw EnvironmentError(folder.string(), "could not be removed: " + code.message());
  }
}

void load_checkpoint(const FoundCheckpoint& found, Model& model, AdamW& optimizer, const ModelIo& io) {
  io.load(model, found.folder);
  const SafetensorsCheckpoint moments(found.folder / kStateFile);
  for (const Parameters::Entry& e : model.parameters().entries()) {
    const size_t offset = static_cast<size_t>(e.offset), size = static_cast<size_t>(e.size);
    moments.read_f32("m." + e.decl.name, optimizer.first_moments().subspan(offset, size));
    moments.read_f32("v." + e.decl.name, optimizer.second_moments().subspan(offset, size));
  }
  optimizer.set_steps(found.state.step);
}

}  // namespace transept
