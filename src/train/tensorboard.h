// TensorBoard event files: a TFRecord file of Event messages.
//   record = length (u64 LE) · masked CRC-32C of those 8 bytes (u32 LE) · bytes · masked CRC-32C of the bytes (u32 LE)
//   masked(crc) = rotate_right(crc, 15) + 0xa282ead8            (tensorflow/core/lib/hash/crc32c.h,
//   lib/io/record_writer.h) Event   = { 1: double wall_time, 2: int64 step, 3: string file_version | 5: Summary summary
//   | 7: SessionLog session_log } Summary = { 1: repeated Value { 1: string tag, 2: float simple_value } }
// (tensorflow/core/util/event.proto, framework/summary.proto). CRC-32C is Castagnoli's polynomial 0x1EDC6F41, reflected
// (RFC 3720, B.4).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {

class FileWriter;

uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

class TensorBoardWriter {
 public:
  // Starts a new event file in `folder` (created when missing), named so that it sorts after the files already there.
  // `wall_time` gives seconds since 1970.
  explicit TensorBoardWriter(const std::filesystem::path& folder, std::function<double()> wall_time = {});
  ~TensorBoardWriter();

  // One event holding all values; those that are not finite are kept, TensorBoard marks them.
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);

  // A resumed run says so once: TensorBoard then forgets what earlier files hold at `first_step` and after.
  void resumed(int64_t first_step);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_event(int64_t step, std::string_view payload);

  std::function<double()> wall_time_;
  std::filesystem::path path_;
  std::unique_ptr<FileWriter> file_;
};

}  // namespace transept
