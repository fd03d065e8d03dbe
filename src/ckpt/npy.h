// NumPy's .npy format, version 1.0 (NEP 1), little-endian and C order only: how logits leave the program and how
// goldens come in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace transept {

void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, std::span<const float> values);
void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, std::span<const int64_t> values);

struct NpyArray {
  DType dtype = DType::kF32;  // kF32, kF64, kI32 or kI64
  std::vector<int64_t> shape;
  std::string bytes;
  int64_t elements() const { return static_cast<int64_t>(bytes.size()) / dtype_bytes(dtype); }
  std::vector<float> as_f32() const;
  std::vector<double> as_f64() const;
  std::vector<int64_t> as_i64() const;  // values of float arrays are truncated towards zero; out of range is InputError
};

// InputError for anything else than float32, float64, int32, int64 in C order, or when the size is not what the header
// says.
NpyArray read_npy(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{4} << 30);

}  // namespace transept
