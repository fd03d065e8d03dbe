#include "convert/model_folder.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "ckpt/safetensors.h"
#include "convert/family.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOwnType = "transept";

std::vector<Piece> own_pieces(const ArchSpec&, const ParamDecl& decl) { return {{decl.name, 0, decl.shape[0]}}; }
bool nothing_ignorable(const std::string&) { return false; }
const Family kOwnFamily{kOwnType, nullptr, nullptr, own_pieces, nothing_ignorable, ""};

struct Config {
  const Family* family;
  Json document;
};

Config read_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  Json document = read_json(file);
  if (!document.is_object() || !document.contains("model_type") || !document.at("model_type").is_string()) {
    throw InputError(file.string(), "has no \"model_type\"", "give a model folder");
  }
  const std::string type = document.at("model_type").get<std::string>();
  if (type == kOwnType) return {&kOwnFamily, std::move(document)};
  std::string known = kOwnType;
  for (const Family* f : families()) {
    if (type == f->model_type) return {f, std::move(document)};
    known += ", " + std::string(f->model_type);
  }
  throw InputError(file.string() + ": model_type", "\"" + type + "\" is not supported", "supported are " + known);
}

ArchSpec spec_of(const Config& config, const fs::path& folder) {
  const std::string where = (folder / "config.json").string();
  if (config.family == &kOwnFamily) {
    if (!config.document.contains("spec")) throw InputError(where + ": spec", "is missing");
    return spec_from_json(config.document.at("spec"), where + ": spec");
  }
  Problems problems;
  const ArchSpec spec = config.family->spec_from_config(config.document, where, problems);
  throw_if_any(std::move(problems));
  // Through the reader of specs, so that an imported model meets every rule that a written one does.
  return spec_from_json(spec_to_json(spec), where);
}

// Columns of the parameter: 1 for a vector.
int64_t columns_of(const ParamDecl& decl) { return decl.shape.size() > 1 ? decl.shape[1] : 1; }

std::vector<int64_t> stored_shape(const ParamDecl& decl, const Piece& piece) {
  if (decl.shape.size() == 1) return {piece.rows};
  return piece.transposed ? std::vector<int64_t>{decl.shape[1], piece.rows}
                          : std::vector<int64_t>{piece.rows, decl.shape[1]};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s = "[";
  for (const int64_t n : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(n);
  return s + "]";
}

void transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  }
}

// The stored tensor under its name, or under its name without the family's prefix.
const StoredTensor* find_stored(const SafetensorsCheckpoint& checkpoint, const Family& family,
                                const std::string& name) {
  if (const StoredTensor* t = checkpoint.find(name)) return t;
  if (!family.base_prefix.empty() && name.starts_with(family.base_prefix))
    return checkpoint.find(name.substr(family.base_prefix.size()));
  return nullptr;
}

constexpr const char* kTiedHead = "lm_head.weight";

}  // namespace

bool is_model_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code) && fs::exists(path / "config.json", code);
}

ArchSpec read_model_spec(const fs::path& folder) { return spec_of(read_config(folder), folder); }

void load_weights(Model& model, const fs::path& folder) {
  const Config config = read_config(folder);
  const Family& family = *config.family;
  const SafetensorsCheckpoint checkpoint(folder);
  Problems problems;
  std::set<std::string> used;
  std::vector<float> scratch;
  for (const Parameters::Entry& entry : model.parameters().entries()) {
    const int64_t columns = columns_of(entry.decl);
    for (const Piece& piece : family.pieces(model.spec(), entry.decl)) {
      const StoredTensor* stored = find_stored(checkpoint, family, piece.stored_name);
      if (!stored) {
        problems.push_back(
            {folder.string() + ": " + piece.stored_name, "is missing",
             entry.decl.part == Part::kHead ? "the head is not tied to the embedding, so it must be stored" : ""});
        continue;
      }
      used.insert(stored->name);
      if (const auto shape = stored_shape(entry.decl, piece); stored->shape != shape) {
        problems.push_back({folder.string() + ": " + stored->name, "has shape " + shape_text(stored->shape),
                            "config.json asks for " + shape_text(shape)});
        continue;
      }
      float* to = model.parameters().values(entry).data() + piece.first_row * columns;
      const size_t size = static_cast<size_t>(piece.rows * columns);
      if (piece.transposed) {
        scratch.resize(size);
        read_f32(*stored, scratch, stored->name);
        transpose(scratch.data(), columns, piece.rows, to);
      } else {
        read_f32(*stored, {to, size}, stored->name);
      }
    }
  }
  for (const StoredTensor* stored : checkpoint.tensors()) {
    if (used.contains(stored->name) || family.ignorable(stored->name)) continue;
    if (stored->name == kTiedHead && model.spec().tie_word_embeddings) {
      const Parameters::Entry* embedding = model.parameters().find("embedding.weight");
      const auto values = model.parameters().values(*embedding);
      if (stored->elements() == static_cast<int64_t>(values.size())) {
        scratch.resize(values.size());
        read_f32(*stored, scratch, stored->name);
        if (std::memcmp(scratch.data(), values.data(), values.size_bytes()) == 0) continue;
      }
      problems.push_back({folder.string() + ": " + stored->name, "differs from the embedding that it is tied to",
                          "set tie_word_embeddings to false"});
      continue;
    }
    problems.push_back({folder.string() + ": " + stored->name, "belongs to nothing that config.json describes", ""});
  }
  throw_if_any(std::move(problems));
}

std::unique_ptr<Model> load_model(const fs::path& folder, bool trainable) {
  auto model = std::make_unique<Model>(read_model_spec(folder), trainable);
  load_weights(*model, folder);
  return model;
}

namespace {

// What a model computes: the spec without what acts in training only or is for a reader.
Json meaning(const ArchSpec& spec) {
  Json document = spec_to_json(spec);
  for (const char* key : {"name", "description", "dropout"}) document.erase(key);
  return document;
}

// The family's config, when reading it gives the same model back: what a family has no key for is never dropped in
// silence, however many options specs have.
std::optional<Json> expressed(const Family& family, const ArchSpec& spec, std::string& reason) {
  std::optional<Json> config = family.config_from_spec(spec, reason);
  if (!config) return std::nullopt;
  Problems problems;
  const ArchSpec again = family.spec_from_config(*config, "", problems);
  const Json wanted = meaning(spec), got = problems.empty() ? meaning(spec_from_json(spec_to_json(again), "")) : Json();
  for (const auto& [key, value] : wanted.items()) {
    if (got.is_object() && got.contains(key) && got[key] == value) continue;
    reason = "has no way to say " + key + " as it is here";
    return std::nullopt;
  }
  return config;
}

}  // namespace

Json model_config(const ArchSpec& spec, std::string* reason) {
  std::string why;
  for (const Family* f : families()) {
    std::string no;
    if (auto config = expressed(*f, spec, no)) return *config;
    why += (why.empty() ? "" : "; ") + std::string(f->model_type) + ": " + no;
  }
  if (reason) *reason = why;
  return Json{{"model_type", kOwnType}, {"spec", spec_to_json(spec)}};
}

void save_model(const Model& model, const fs::path& folder) {
  const Json config = model_config(model.spec());
  const std::string type = config.at("model_type").get<std::string>();
  const Family* family = &kOwnFamily;
  for (const Family* f : families()) {
    if (type == f->model_type) family = f;
  }
  std::vector<TensorToStore> tensors;
  std::vector<std::vector<float>> transposed;
  for (const Parameters::Entry& entry : model.parameters().entries()) {
    const int64_t columns = columns_of(entry.decl);
    for (Piece& piece : family->pieces(model.spec(), entry.decl)) {
      const float* from = model.parameters().param(entry.decl.name).value + piece.first_row * columns;
      if (piece.transposed) {
        transposed.emplace_back(static_cast<size_t>(piece.rows * columns));
        transpose(from, piece.rows, columns, transposed.back().data());
        from = transposed.back().data();
      }
      tensors.push_back({std::move(piece.stored_name), DType::kF32, stored_shape(entry.decl, piece), from});
    }
  }
  write_safetensors(folder / "model.safetensors", std::move(tensors));
  FileWriter out(folder / "config.json");
  out.write(config.dump(2) + "\n");
  out.close();
}

}  // namespace transept
