// Model folders: config.json and safetensors. A folder is in Hugging Face form where one of the families can express
// the spec, and in our own form otherwise ("model_type": "transept", the spec inside, tensors under their declared
// names).
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nn/model.h"
#include "spec/arch_spec.h"
#include "tensor/dtype.h"

namespace transept {

// Whether the path is a folder with a config.json.
bool is_model_folder(const std::filesystem::path& path);

// From config.json alone. InputError lists every key that is missing, wrong, or not understood though it may change the
// numbers.
ArchSpec read_model_spec(const std::filesystem::path& folder);

// The model_type of its config.json.
std::string read_model_type(const std::filesystem::path& folder);
// Its "bos_token_id", "eos_token_id" and so on.
Json read_token_ids(const std::filesystem::path& folder);

// Fills the model's parameters. InputError names every tensor that is missing, extra or of another shape. A tied head
// that is stored as well must equal the embedding; an untied head that is absent is refused.
void load_weights(Model& model, const std::filesystem::path& folder);

enum class LoadFor {
  kUse,    // float32
  kTrain,  // float32, with gradients
  kRun,    // 16-bit matrices stay in the file, which is mapped
};
std::unique_ptr<Model> load_model(const std::filesystem::path& folder, LoadFor use = LoadFor::kUse);

struct SaveOptions {
  std::string family = {};      // the model_type that is tried first; "": none
  DType dtype = DType::kF32;    // of all tensors: f32, f16 or bf16
  int64_t max_shard_bytes = 0;  // 0: one file
  Json token_ids = {};          // of special tokens, by their keys in config.json; those that are not there become null
};

// Writes config.json and model.safetensors, or shards with their index, into an existing folder; each file is synced.
void save_model(const Model& model, const std::filesystem::path& folder, const SaveOptions& options = {});

// The config.json that save_model writes. `reasons` says of each family that was tried why it can't express the spec,
// "llama: position is not rope"; the one that is asked for comes first.
Json model_config(const ArchSpec& spec, const std::string& family = {}, std::vector<std::string>* reasons = nullptr);

// The files beside weights and config that say how a model is used: tokenizer, chat template, generation, pooling.
// Copies those that there are, and gives their names.
std::vector<std::string> copy_companions(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace transept
