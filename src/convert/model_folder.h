// Model folders: config.json and safetensors. A folder is in Hugging Face form where one of the families can express
// the spec, and in our own form otherwise ("model_type": "transept", the spec inside, tensors under their declared
// names).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "nn/model.h"
#include "spec/arch_spec.h"

namespace transept {

// Whether the path is a folder with a config.json.
bool is_model_folder(const std::filesystem::path& path);

// From config.json alone. InputError lists every key that is missing, wrong, or not understood though it may change the
// numbers.
ArchSpec read_model_spec(const std::filesystem::path& folder);

// Fills the model's parameters. InputError names every tensor that is missing, extra or of another shape. A tied head
// that is stored as well must equal the embedding; an untied head that is absent is refused.
void load_weights(Model& model, const std::filesystem::path& folder);

std::unique_ptr<Model> load_model(const std::filesystem::path& folder, bool trainable = false);

// Writes config.json and model.safetensors (float32) into an existing folder; each file is synced.
void save_model(const Model& model, const std::filesystem::path& folder);

// The config.json that save_model writes; `reason` says why not when no family can express the spec and our own form is
// used.
Json model_config(const ArchSpec& spec, std::string* reason = nullptr);

}  // namespace transept
