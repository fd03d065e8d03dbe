// The safetensors container (https://huggingface.co/docs/safetensors, "Format"): an 8-byte little-endian header length,
// a JSON header name -> {dtype, shape, data_offsets}, then the bytes, without gaps or overlaps. Everything in a file is
// hostile: each length is checked before it is used, and InputError names the file and the tensor. A tensor's bytes are
// a view of the map, never copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/dtype.h"

namespace transept {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // exactly elements() * dtype_bytes(dtype); not necessarily aligned
  int64_t elements() const { return static_cast<int64_t>(bytes.size()) / dtype_bytes(dtype); }
};

// One file. The views live as long as the object.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // by name
  const StoredTensor* find(std::string_view name) const;                 // nullptr when absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::filesystem::path path_;
  MappedFile map_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A checkpoint: one .safetensors file, or a folder with `model.safetensors`, or a folder with
// `model.safetensors.index.json` whose `weight_map` names a shard for each tensor. A missing shard, a tensor absent
// from its shard or found in another one is refused.
class SafetensorsCheckpoint {
 public:
  explicit SafetensorsCheckpoint(const std::filesystem::path& file_or_folder);
  // Whether the folder holds one of the two names above.
  static bool present(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<const StoredTensor*>& tensors() const { return tensors_; }  // by name
  const StoredTensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // of the first file
  // As float32 from f32, f16, bf16 or f64. InputError when the tensor is absent, of another type, or not of out.size()
  // elements.
  void read_f32(std::string_view name, std::span<float> out) const;

 private:
  std::filesystem::path path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<const StoredTensor*> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Same, for a tensor in hand; `where` names it in errors.
void read_f32(const StoredTensor& tensor, std::span<float> out, const std::string& where);

struct TensorToStore {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;  // contiguous, row-major
};

// Streams the tensors to the file in the order of the reference implementation (widest type first, then by name, so
// that each is aligned), header padded with spaces to 8 bytes; synced when it returns. The same tensors give the same
// bytes. EnvironmentError on failure.
void write_safetensors(const std::filesystem::path& path, std::vector<TensorToStore> tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace transept
