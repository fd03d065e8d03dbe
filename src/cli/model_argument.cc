#include "cli/model_argument.h"

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "convert/end_tokens.h"
#include "convert/model_folder.h"
#include "spec/presets.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

// The model folder that a path means, if it means one.
std::optional<fs::path> folder_of(const fs::path& path) {
  if (is_model_folder(path)) return path;
  if (is_model_folder(path / "checkpoint")) return path / "checkpoint";
  return std::nullopt;
}

}  // namespace

ArchSpec resolve_spec(const std::string& argument) {
  if (is_preset(argument)) return preset(argument);
  if (const auto folder = folder_of(argument)) return read_model_spec(*folder);
  std::error_code code;
  if (fs::is_directory(argument, code)) {
    throw InputError(argument, "is a folder without a config.json", "give a model folder, a spec file or a preset");
  }
  if (fs::exists(argument, code)) return spec_from_json(read_json(argument), argument);
  return preset(argument);  // names the closest presets
}

fs::path resolve_folder(const std::string& argument) {
  if (const auto folder = folder_of(argument)) return *folder;
  resolve_spec(argument);  // says what is wrong with it, if anything
  throw InputError(argument, "has no weights", "give a model folder, such as the checkpoint of a training run");
}

LoadedModel load_model_argument(const std::string& argument) {
  const fs::path folder = resolve_folder(argument);
  const auto start = std::chrono::steady_clock::now();
  auto model = load_model(folder, LoadFor::kRun);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {std::move(model), has_tokenizer(folder) ? load_tokenizer(folder) : nullptr, read_end_tokens(folder), folder,
          seconds.count()};
}

const Tokenizer& require_tokenizer(const LoadedModel& loaded, const std::string& argument) {
  if (!loaded.tokenizer)
    throw InputError(argument, "has no tokenizer", "put its tokenizer.json or tokenizer.model into the folder");
  return *loaded.tokenizer;
}

std::vector<int32_t> parse_tokens(const std::string& text, const std::string& flag) {
  std::vector<int32_t> tokens;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ',')) {
      throw InputError(flag, "\"" + text + "\" is not a list of token ids", "write them as 1,2,3");
    }
    tokens.push_back(value);
    if (next == end) return tokens;
    at = next + 1;
  }
}

}  // namespace transept
