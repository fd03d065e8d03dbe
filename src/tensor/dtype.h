// Element types of stored tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace transept {

enum class DType { kF32, kF16, kBF16, kF64, kI64, kI32, kI16, kI8, kU8, kBool };

int64_t dtype_bytes(DType t);
std::string_view dtype_name(DType t);        // "f32", "bf16", ... as on the command line
std::string_view safetensors_name(DType t);  // "F32", "BF16", ...
std::optional<DType> dtype_from_safetensors(std::string_view name);

}  // namespace transept
