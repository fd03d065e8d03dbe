#include "convert/model_folder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <tuple>

#include "base/check.h"
#include "base/file.h"
#include "ckpt/safetensors.h"
#include "convert/family.h"
#include "convert/folder_names.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

struct Config {
  const Family* family;  // null: our own form
  Json document;
};

Config read_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  Json document = read_json(file);
  if (!document.is_object() || !document.contains("model_type") || !document.at("model_type").is_string()) {
    throw InputError(file.string(), "has no \"model_type\"", "give a model folder");
  }
  const std::string type = document.at("model_type").get<std::string>();
  if (type == kOwnType) return {nullptr, std::move(document)};
  if (const Family* family = find_family(type)) return {family, std::move(document)};
  std::string known(kOwnType);
  for (const Family* f : families()) known += ", " + std::string(f->model_type);
  throw InputError(file.string() + ": model_type", "\"" + type + "\" is not supported", "supported are " + known);
}

ArchSpec spec_of(const Config& config, const fs::path& folder) {
  const std::string where = (folder / "config.json").string();
  if (!config.family) {
    if (!config.document.contains("spec")) throw InputError(where + ": spec", "is missing");
    return spec_from_json(config.document.at("spec"), where + ": spec");
  }
  Problems problems;
  const ArchSpec spec = read_family_config(*config.family, config.document, where, problems);
  throw_if_any(std::move(problems));
  // Through the reader of specs, so that an imported model meets every rule that a written one does.
  return spec_from_json(spec_to_json(spec), where);
}

// Such a folder can be planned, but its tensors are not the model's.
void refuse_quantized(const Config& config, const fs::path& folder) {
  const auto at = config.document.find("quantization_config");
  if (at == config.document.end() || at->is_null()) return;
  const bool named = at->is_object() && at->contains("quant_method") && at->at("quant_method").is_string();
  throw InputError((folder / "config.json").string() + ": quantization_config",
                   "the weights are quantized" +
                       (named ? " (" + at->at("quant_method").get<std::string>() + ")" : std::string()) +
                       ", and weights are read as f32, f16 or bf16",
                   "give the folder with its weights in bf16");
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s = "[";
  for (const int64_t n : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(n);
  return s + "]";
}

// Names of the norms' parameters in the first checkpoints of BERT.
std::string newer_name(std::string name) {
  for (const auto& [old, now] : {std::pair{".gamma", ".weight"}, std::pair{".beta", ".bias"}}) {
    if (name.ends_with(old)) name.replace(name.size() - std::strlen(old), std::string::npos, now);
  }
  return name;
}

// Reads tensors whole, and keeps the last one: pieces of one tensor come one after another.
class TensorReader {
 public:
  std::span<const float> read(const StoredTensor& tensor) {
    if (&tensor != last_) {
      values_.resize(static_cast<size_t>(tensor.elements()));
      read_f32(tensor, values_, tensor.name);
      last_ = &tensor;
    }
    return values_;
  }

 private:
  const StoredTensor* last_ = nullptr;
  std::vector<float> values_;
};

}  // namespace

bool is_model_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code) && fs::exists(path / "config.json", code);
}

ArchSpec read_model_spec(const fs::path& folder) { return spec_of(read_config(folder), folder); }

std::string read_model_type(const fs::path& folder) {
  return read_config(folder).document.at("model_type").get<std::string>();
}

Json read_token_ids(const fs::path& folder) {
  const Json document = read_config(folder).document;
  Json ids = Json::object();
  for (const char* key : kTokenIdKeys) {
    if (document.contains(key)) ids[key] = document.at(key);
  }
  return ids;
}

namespace {

// A checkpoint's tensors under the names that a family gives them today.
class StoredTensors {
 public:
  StoredTensors(const fs::path& folder, const Family* family)
      : checkpoint_(std::make_shared<SafetensorsCheckpoint>(folder)), prefix_(family ? family->base_prefix : "") {
    for (const StoredTensor* stored : checkpoint_->tensors()) by_name_.emplace(newer_name(stored->name), stored);
  }

  // With the family's prefix or without it; null: there is none.
  const StoredTensor* find(const std::string& name) const {
    auto at = by_name_.find(name);
    if (at == by_name_.end() && !prefix_.empty())
      at = by_name_.find(name.starts_with(prefix_) ? name.substr(prefix_.size()) : prefix_ + name);
    return at == by_name_.end() ? nullptr : at->second;
  }
  const std::map<std::string, const StoredTensor*>& by_name() const { return by_name_; }
  std::shared_ptr<const void> owner() const { return checkpoint_; }

 private:
  std::shared_ptr<SafetensorsCheckpoint> checkpoint_;
  std::string prefix_;
  std::map<std::string, const StoredTensor*> by_name_;
};

// The parameter as it is stored, where all of its pieces are rows of 16-bit floats of one type.
std::optional<StoredMatrices::Matrix> as_stored(const ParamDecl& decl, const std::vector<Piece>& pieces,
                                                const StoredTensors& tensors) {
  if (!may_stay_stored(decl)) return std::nullopt;
  StoredMatrices::Matrix matrix;
  for (const Piece& piece : pieces) {
    const StoredTensor* stored = tensors.find(piece.stored_name);
    if (!stored || !piece.as_declared(columns_of(decl)) || stored->shape != piece.stored_shape) return std::nullopt;
    if (stored->dtype != DType::kBF16 && stored->dtype != DType::kF16) return std::nullopt;
    if (!matrix.rows.empty() && stored->dtype != matrix.dtype) return std::nullopt;
    const std::byte* data = stored->bytes.data();
    if (reinterpret_cast<uintptr_t>(data) % alignof(uint16_t) != 0) return std::nullopt;
    matrix.dtype = stored->dtype;
    matrix.rows.push_back({reinterpret_cast<const uint16_t*>(data) + piece.offset, piece.first_row, piece.rows});
  }
  return matrix;
}

void read_weights(Model& model, const fs::path& folder, const Family* family, const StoredTensors& tensors) {
  const ArchSpec& spec = model.spec();
  const FolderNames names(family, spec);
  Problems problems;
  std::set<const StoredTensor*> used;
  TensorReader reader;
  for (const Parameters::Entry& entry : model.parameters().entries()) {
    const int64_t columns = columns_of(entry.decl);
    std::set<std::string> named;  // in problems of this parameter
    std::vector<Piece> pieces = names.pieces(entry.decl);
    // Those of one tensor together, for the reader of tensors.
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.stored_name, a.first_row) < std::tie(b.stored_name, b.first_row);
    });
    for (const Piece& piece : pieces) {
      const StoredTensor* stored = tensors.find(piece.stored_name);
      if (!stored) {
        if (!named.insert(piece.stored_name).second) continue;
        problems.push_back(
            {folder.string() + ": " + piece.stored_name, "is missing",
             entry.decl.part == Part::kHead ? "the head is not tied to the embedding, so it must be stored" : ""});
        continue;
      }
      used.insert(stored);
      if (stored->shape != piece.stored_shape) {
        if (!named.insert(piece.stored_name).second) continue;
        problems.push_back({folder.string() + ": " + stored->name, "has shape " + shape_text(stored->shape),
                            "config.json asks for " + shape_text(piece.stored_shape)});
        continue;
      }
      if (entry.stored) continue;
      const std::span<const float> values = reader.read(*stored);
      float* to = model.parameters().values(entry).data();
      if (piece.as_declared(columns)) {
        std::copy_n(values.data() + piece.offset, piece.rows * columns, to + piece.first_row * columns);
      } else {
        for_elements(piece, columns,
                     [&](int64_t own, int64_t stored_at) { to[own] = values[static_cast<size_t>(stored_at)]; });
      }
    }
  }
  for (const auto& [name, stored] : tensors.by_name()) {
    if (used.contains(stored) || (family && family->ignorable && family->ignorable(spec, name))) continue;
    if (spec.tie_word_embeddings && names.is_head(name)) {
      const ParamDecl& decl = model.parameters().find("embedding.weight")->decl;
      const StoredTensor* embedding = tensors.find(names.pieces(decl).front().stored_name);
      if (embedding && stored->dtype == embedding->dtype && stored->bytes.size() == embedding->bytes.size() &&
          std::memcmp(stored->bytes.data(), embedding->bytes.data(), stored->bytes.size()) == 0)
        continue;
      problems.push_back({folder.string() + ": " + stored->name, "differs from the embedding that it is tied to",
                          "set tie_word_embeddings to false"});
      continue;
    }
    if (family && !family->zeros.empty() && name == family->zeros) {
      const std::span<const float> values = reader.read(*stored);
      if (std::all_of(values.begin(), values.end(), [](float x) { return x == 0; })) continue;
    }
    problems.push_back({folder.string() + ": " + stored->name, "belongs to nothing that config.json describes", ""});
  }
  throw_if_any(std::move(problems));
}

}  // namespace

void load_weights(Model& model, const fs::path& folder) {
  const Config config = read_config(folder);
  refuse_quantized(config, folder);
  read_weights(model, folder, config.family, StoredTensors(folder, config.family));
}

std::unique_ptr<Model> load_model(const fs::path& folder, LoadFor use) {
  const Config config = read_config(folder);
  refuse_quantized(config, folder);
  ArchSpec spec = spec_of(config, folder);
  const StoredTensors tensors(folder, config.family);
  StoredMatrices kept;
  if (use == LoadFor::kRun) {
    const FolderNames names(config.family, spec);
    const ParamList declared = spec.declare();
    for (const ParamDecl& decl : declared.decls()) {
      if (auto matrix = as_stored(decl, names.pieces(decl), tensors))
        kept.by_name.emplace(decl.name, *std::move(matrix));
    }
    kept.owner = tensors.owner();
  }
  auto model = std::make_unique<Model>(std::move(spec), use == LoadFor::kTrain, std::move(kept));
  read_weights(*model, folder, config.family, tensors);
  return model;
}

}  // namespace transept
