// Writing a model folder: in the form of a family that can say all of the spec, or in our own.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "ckpt/safetensors.h"
#include "convert/folder_names.h"
#include "convert/model_folder.h"
#include "kernels/elementwise.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

void forget_unread_rows(PositionSpec& any) {
  if (auto* learned = std::get_if<LearnedPosition>(&any)) learned->offset = 0;
}

// What a model computes: the spec without what acts in training only, is read by no token or is for a reader.
Json meaning(ArchSpec spec) {
  for (StackSpec* stack : {static_cast<StackSpec*>(&spec), &spec.encoder}) {
    forget_unread_rows(stack->position);
    for (LayerSpec& layer : stack->layers) forget_unread_rows(layer.position);
  }
  for (LayerSpec& layer : spec.layers) {
    const MoeSpec none;
    MoeSpec& moe = layer.moe;
    moe.bias_update_speed = none.bias_update_speed;
    moe.router_aux_loss_coef = none.router_aux_loss_coef;
    moe.aux_loss_scope = none.aux_loss_scope;
    moe.router_z_loss_coef = none.router_z_loss_coef;
    moe.capacity_factor = none.capacity_factor;
    moe.router_jitter_noise = none.router_jitter_noise;
  }
  Json document = spec_to_json(spec);
  for (const char* key : {"name", "description", "dropout", "initializer_range"}) document.erase(key);
  return document;
}

// The family's config, when reading it gives the same model back: what a family has no key for is never dropped in
// silence, however many options specs have.
std::optional<Json> expressed(const Family& family, const ArchSpec& spec, std::string& reason) {
  std::optional<Json> config = write_family_config(family, spec, reason);
  if (!config) return std::nullopt;
  Problems problems;
  const Json wanted = meaning(spec);
  Json got;
  try {
    const ArchSpec again = read_family_config(family, *config, "", problems);
    if (problems.empty()) got = meaning(spec_from_json(spec_to_json(again), ""));
  } catch (const InputError&) {
    // The family's reading of what it wrote is no model: got stays empty.
  }
  for (const auto& [key, value] : wanted.items()) {
    if (got.is_object() && got.contains(key) && got[key] == value) continue;
    reason = "has no way to say " + key + " as it is here";
    return std::nullopt;
  }
  return config;
}

// A tensor of the folder, and whose values it has: a parameter's as they lie, or made ones.
struct Source {
  std::string name;
  std::vector<int64_t> shape;
  const float* values;
  int64_t elements;
};

std::vector<Source> sources(const Model& model, const FolderNames& names,
                            std::map<std::string, std::vector<float>>& made) {
  std::vector<Source> all;
  for (const Parameters::Entry& entry : model.parameters().entries()) {
    const int64_t columns = columns_of(entry.decl);
    for (const Piece& piece : names.pieces(entry.decl)) {
      const float* from = model.parameters().param(entry.decl.name).value;
      int64_t size = 1;
      for (const int64_t n : piece.stored_shape) size *= n;
      if (piece.as_declared(columns) && piece.rows * columns == size) {
        all.push_back({piece.stored_name, piece.stored_shape, from + piece.first_row * columns, size});
        continue;
      }
      auto [at, added] = made.try_emplace(piece.stored_name, static_cast<size_t>(size), 0.f);
      if (added) all.push_back({piece.stored_name, piece.stored_shape, at->second.data(), size});
      float* const to = at->second.data();
      if (piece.as_declared(columns)) {
        std::copy_n(from + piece.first_row * columns, piece.rows * columns, to + piece.offset);
      } else {
        for_elements(piece, columns, [&](int64_t own, int64_t stored) { to[stored] = from[own]; });
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const Source& a, const Source& b) { return a.name < b.name; });
  return all;
}

void write_file(const fs::path& path, std::span<const Source> tensors, DType dtype) {
  std::vector<std::vector<uint16_t>> converted;
  std::vector<TensorToStore> stored;
  for (const Source& t : tensors) {
    const void* data = t.values;
    if (dtype != DType::kF32) {
      std::vector<uint16_t>& to = converted.emplace_back(static_cast<size_t>(t.elements));
      (dtype == DType::kBF16 ? bf16_from_f32 : f16_from_f32)(t.values, t.elements, to.data());
      data = to.data();
    }
    stored.push_back({t.name, dtype, t.shape, data});
  }
  write_safetensors(path, std::move(stored));
}

// Runs of tensors of at most that many bytes, a larger tensor alone.
std::vector<std::span<const Source>> shards(std::span<const Source> tensors, DType dtype, int64_t most) {
  if (most <= 0) return {tensors};
  std::vector<std::span<const Source>> all;
  size_t first = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t own = tensors[i].elements * dtype_bytes(dtype);
    if (i > first && bytes + own > most) {
      all.push_back(tensors.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += own;
  }
  all.push_back(tensors.subspan(first));
  return all;
}

void write_text(const fs::path& path, const Json& document) {
  FileWriter out(path);
  out.write(document.dump(2) + "\n");
  out.close();
}

}  // namespace

Json model_config(const ArchSpec& spec, const std::string& family, std::vector<std::string>* reasons) {
  const auto attempt = [&](const Family& f) {
    std::string no;
    auto config = expressed(f, spec, no);
    if (!config && reasons) reasons->push_back(std::string(f.model_type) + ": " + no);
    return config;
  };
  const Family* const first = find_family(family);
  if (first) {
    if (auto config = attempt(*first)) return *config;
  }
  for (const Family* f : families()) {
    if (f == first || family == kOwnType) continue;
    if (auto config = attempt(*f)) return *config;
  }
  return Json{{"model_type", kOwnType}, {"spec", spec_to_json(spec)}};
}

std::vector<std::string> copy_companions(const fs::path& from, const fs::path& to) {
  std::vector<std::string> copied;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
                           "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "source.spm",
                           "target.spm", "sentencepiece.bpe.model", "chat_template.jinja", "chat_template.json",
                           "generation_config.json", "modules.json", "1_Pooling/config.json"}) {
    std::error_code code;
    if (!fs::is_regular_file(from / name, code)) continue;
    fs::create_directories((to / name).parent_path());
    fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing);
    copied.emplace_back(name);
  }
  return copied;
}

void save_model(const Model& model, const fs::path& folder, const SaveOptions& options) {
  TRANSEPT_CHECK(options.dtype == DType::kF32 || options.dtype == DType::kF16 || options.dtype == DType::kBF16);
  Json config = model_config(model.spec(), options.family);
  const FolderNames names(find_family(config.at("model_type").get<std::string>()), model.spec());
  static const std::map<DType, const char*> kTorchNames{
      {DType::kF32, "float32"}, {DType::kF16, "float16"}, {DType::kBF16, "bfloat16"}};
  for (size_t i = 0; i < kTokenIdKeys.size(); ++i) {
    const char* const key = kTokenIdKeys[i];
    const bool given = options.token_ids.contains(key);
    if ((given || i < kTokenIdsAlways) && !config.contains(key))
      config[key] = given ? options.token_ids.at(key) : Json();
  }
  config["torch_dtype"] = kTorchNames.at(options.dtype);

  std::map<std::string, std::vector<float>> made;
  const std::vector<Source> tensors = sources(model, names, made);
  const auto parts = shards(tensors, options.dtype, options.max_shard_bytes);
  if (parts.size() == 1) {
    write_file(folder / "model.safetensors", tensors, options.dtype);
  } else {
    int64_t total = 0;
    Json weight_map = Json::object();
    for (size_t i = 0; i < parts.size(); ++i) {
      char name[64];
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, parts.size());
      write_file(folder / name, parts[i], options.dtype);
      for (const Source& t : parts[i]) {
        weight_map[t.name] = name;
        total += t.elements * dtype_bytes(options.dtype);
      }
    }
    write_text(folder / "model.safetensors.index.json",
               {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}});
  }
  write_text(folder / "config.json", config);
}

}  // namespace transept
