#include "plan/stored_type.h"

namespace transept {
namespace {

// Block sizes: scales and minima in f16, or packed in 6 bits for the K types (256 elements in 8 or 16 sub-blocks).
const std::vector<StoredType> kTypes = {
    {"f32", 1, 4},      {"bf16", 1, 2},    {"f16", 1, 2},      {"f8", 1, 1},       {"q8_0", 32, 34}, {"q6_k", 256, 210},
    {"q5_k", 256, 176}, {"q5_1", 32, 24},  {"q5_0", 32, 22},   {"q4_k", 256, 144}, {"q4_1", 32, 20}, {"q4_0", 32, 18},
    {"iq4_nl", 32, 18}, {"mxfp4", 32, 17}, {"q3_k", 256, 110}, {"q2_k", 256, 84},
};
constexpr int64_t kLargestCacheBlock = 32;

int64_t row_bytes(int64_t width, const StoredType& type) {
  return (width + type.block_elements - 1) / type.block_elements * type.block_bytes;
}

const StoredType& of_matrix(int64_t width, const StoredType& wanted) {
  for (const StoredType* type : {&wanted, find_stored_type("q8_0")}) {
    if (width % type->block_elements == 0) return *type;
  }
  return *find_stored_type("f16");
}

}  // namespace

const std::vector<StoredType>& stored_types() { return kTypes; }

const StoredType* find_stored_type(std::string_view name) {
  for (const StoredType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

bool serves_a_cache(const StoredType& type) { return type.block_elements <= kLargestCacheBlock; }

std::string stored_type_names(bool of_cache) {
  std::string names;
  for (const StoredType& type : kTypes) {
    if (of_cache && !serves_a_cache(type)) continue;
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

Count elements(const ParamDecl& decl) {
  Count n(1);
  for (const int64_t extent : decl.shape) n = n * extent;
  return n;
}

Count stored_bytes(const ParamDecl& decl, const StoredType& type) {
  if (!type.quantized()) return elements(decl) * type.block_bytes;
  if (decl.shape.size() != 2 || decl.part == Part::kPosition) return elements(decl) * 4;
  const StoredType& own = of_matrix(decl.shape[1], type);
  return Count(decl.shape[0]) * row_bytes(decl.shape[1], own);
}

Count stored_bytes_of_expert(const ParamDecl& decl, const StoredType& type) {
  return stored_bytes(decl, type).value() / decl.experts;
}

Count stored_rows(int64_t width, Count rows, const StoredType& type) {
  return width == 0 ? Count() : rows * row_bytes(width, type);
}

}  // namespace transept
