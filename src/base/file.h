// Files: whole reads with a bound, read-only maps, and writes that never leave a half-written file under the final
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace transept {

// The whole file as bytes. InputError when it is missing or not a regular file or larger than max_bytes;
// EnvironmentError when reading fails.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes);

// Writes aside in the same folder, syncs, renames, syncs the folder. EnvironmentError on any failure; the old file then
// still stands.
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

// A file being written: every write is checked, `close` syncs. EnvironmentError on failure (a full disk names the
// file).
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);  // truncates
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void close();  // flush, fsync, close

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Replaces folder `target` by the fully written folder `staged` in one step, keeping the former one as `previous`
// (replaced as well). At every instant either `target` or `previous` is a whole folder. All files in `staged` must have
// been synced.
void replace_folder_atomic(const std::filesystem::path& staged, const std::filesystem::path& target,
                           const std::filesystem::path& previous);

// Creates the folder and its parents; EnvironmentError with the path when it cannot be created or written to.
void make_writable_folder(const std::filesystem::path& path);

// A read-only memory map. InputError when the file is missing or not regular.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace transept
