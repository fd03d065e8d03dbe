// Training runs to fit a scaling law to, from a file: CSV with a header, JSON lines, or one JSON array of objects.
// Columns (keys) in any order: params, loss, and tokens or flops (tokens = flops / (6 params); where both stand, tokens
// count). Others are passed over. Numbers as quantity.h reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

struct ScalingRun {
  double params = 0;
  double tokens = 0;
  double loss = 0;  // nats a token

  double flops() const;
  friend bool operator==(const ScalingRun&, const ScalingRun&) = default;
};

// Far more than anyone has trained; it bounds the time of a fit.
inline constexpr size_t kMaxRuns = 100000;

// InputError with every problem, each at its line (`where`:LINE; of a JSON array `where`[INDEX]).
std::vector<ScalingRun> parse_runs(std::string_view text, const std::string& where);
std::vector<ScalingRun> read_runs(const std::filesystem::path& path);

}  // namespace transept
