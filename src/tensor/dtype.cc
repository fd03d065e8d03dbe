#include "tensor/dtype.h"

#include <array>

namespace transept {
namespace {
struct Row {
  DType type;
  int64_t bytes;
  std::string_view name, safetensors;
};
constexpr std::array<Row, 10> kTable{{
    {DType::kF32, 4, "f32", "F32"},
    {DType::kF16, 2, "f16", "F16"},
    {DType::kBF16, 2, "bf16", "BF16"},
    {DType::kF64, 8, "f64", "F64"},
    {DType::kI64, 8, "i64", "I64"},
    {DType::kI32, 4, "i32", "I32"},
    {DType::kI16, 2, "i16", "I16"},
    {DType::kI8, 1, "i8", "I8"},
    {DType::kU8, 1, "u8", "U8"},
    {DType::kBool, 1, "bool", "BOOL"},
}};
const Row& row(DType t) { return kTable[static_cast<size_t>(t)]; }
}  // namespace

int64_t dtype_bytes(DType t) { return row(t).bytes; }
std::string_view dtype_name(DType t) { return row(t).name; }
std::string_view safetensors_name(DType t) { return row(t).safetensors; }

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const Row& r : kTable) {
    if (r.safetensors == name) return r.type;
  }
  return std::nullopt;
}

}  // namespace transept
