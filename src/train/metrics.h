// DIR/metrics.jsonl: one JSON object a line, in the order of the steps. Every line is handed to the system by one write
// call, so a killed process leaves at most one torn line, the last, which readers ignore and a resumed writer removes.
//
// Keys the trainer writes, and studies and reports read (any may be absent; more may follow): step, tokens (seen so
// far), loss, val_loss, lr, grad_norm, tokens_per_second, flops_per_second, seconds (since the start),
// peak_memory_bytes, and what train/routers.h lists. A value that is no finite number is null: JSON has no NaN.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace transept {

// One record in key order. Whole numbers below 2^53 are written without a fraction.
using Metrics = std::vector<std::pair<std::string, double>>;

class MetricsWriter {
 public:
  // Without `resume_at` the file starts anew. With it, records with step <= *resume_at stay, later ones and a torn last
  // line go; a line in the middle that is no record is an InputError. EnvironmentError when the file cannot be written.
  explicit MetricsWriter(const std::filesystem::path& path, std::optional<int64_t> resume_at = std::nullopt);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // EnvironmentError when the line cannot be stored whole; the file then ends with the line before.
  void append(const Metrics& record);
  void append(const Json& record);  // an object
  void sync();                      // to the disk: before the checkpoint that a resume would start from

 private:
  void write_line(std::string line);

  std::filesystem::path path_;
  int fd_ = -1;
};

// Every record, in file order. A torn last line is left out; anything else that is no JSON object, a line beyond 1 MiB
// or a file beyond 1 GiB is an InputError naming the line.
std::vector<Json> read_metrics(const std::filesystem::path& path);

// The number under `key`, or NaN when it is absent, null or no number.
double metric(const Json& record, std::string_view key);

}  // namespace transept
