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

}  // namespace

const std::vector<StoredType>& stored_types() { return kTypes; }

const StoredType* find_stored_type(std::string_view name) {
  for (const StoredType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

bool serves_a_cache(const StoredType& type) { return type.block_elements <= kLargestCacheBlock; }

Count stored_rows(int64_t width, Count rows, const StoredType& type) {
  return rows * ((width + type.block_elements - 1) / type.block_elements * type.block_bytes);
}

}  // namespace transept
