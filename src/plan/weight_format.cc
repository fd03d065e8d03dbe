#include "plan/weight_format.h"

#include <algorithm>

#include "plan/parameters.h"

namespace transept {
namespace {

const StoredType& stored(std::string_view name) { return *find_stored_type(name); }

const std::vector<WeightFormat>& formats() {
  static const std::vector<WeightFormat> all = [] {
    std::vector<WeightFormat> list;
    for (const StoredType& type : stored_types()) {
      if (type.name == "q5_k" || type.name == "q4_k")
        list.push_back({type.name == "q5_k" ? "q5_k_m" : "q4_k_m", &type, true});
      list.push_back({type.name, &type, false});
    }
    return list;
  }();
  return all;
}

const StoredType& that_fits(int64_t width, const StoredType& wanted) {
  for (const StoredType* type : {&wanted, find_stored_type("q8_0")}) {
    if (width % type->block_elements == 0) return *type;
  }
  return stored("f16");
}

// The first and last eighth of the layers, and every third between.
bool keeps_more(int64_t layer, int64_t layers) {
  const int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

// Rows of a fused projection that make values; all of a network's last projection; else none.
int64_t rows_kept(const ArchSpec& spec, const ParamDecl& decl) {
  const StackSpec& stack = decl.encoder ? spec.encoder : spec;
  if (decl.layer < 0 || !keeps_more(decl.layer, static_cast<int64_t>(stack.layers.size()))) return 0;
  if (decl.part == Part::kFfn && decl.name.ends_with("down.weight")) return decl.shape[0];
  const auto* gqa = std::get_if<GqaSpec>(&stack.layers[static_cast<size_t>(decl.layer)].attention);
  return gqa && decl.name.ends_with("kv.weight") ? gqa->kv_width() : 0;
}

}  // namespace

std::vector<std::string_view> weight_format_names() {
  std::vector<std::string_view> names;
  for (const WeightFormat& f : formats()) names.push_back(f.name);
  return names;
}

const WeightFormat* WeightFormat::find(std::string_view name) {
  for (const WeightFormat& f : formats()) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

Count WeightFormat::bytes(const ArchSpec& spec, const ParamDecl& decl) const {
  if (!type->quantized()) return elements(decl) * type->block_bytes;
  if (decl.shape.size() != 2 || decl.part == Part::kPosition) return elements(decl) * stored("f32").block_bytes;
  const int64_t rows = decl.shape[0], width = decl.shape[1];
  const StoredType& more = type->bits_per_element() < stored("q6_k").bits_per_element() ? stored("q6_k") : *type;
  const bool head = decl.part == Part::kHead || (decl.part == Part::kEmbedding && spec.tie_word_embeddings);
  const int64_t kept = head ? rows : mixed ? rows_kept(spec, decl) : 0;
  return stored_rows(width, kept, that_fits(width, more)) + stored_rows(width, rows - kept, that_fits(width, *type));
}

}  // namespace transept
