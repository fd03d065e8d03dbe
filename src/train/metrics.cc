#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "base/problem.h"

namespace transept {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
constexpr size_t kMaxLineBytes = size_t{1} << 20;

struct Line {
  std::string_view text;  // without its newline
  Json record;
};

Json parse_record(std::string_view text, const std::string& where) {
  if (text.size() > kMaxLineBytes) {
    throw InputError(where, "is longer than " + std::to_string(kMaxLineBytes) + " bytes", "remove the line");
  }
  Json record;
  try {
    record = parse_json(text, where);
  } catch (const Json::exception& e) {  // a number beyond double's range
    throw InputError(where, std::string("is not valid JSON: ") + e.what(), "remove the line");
  }
  if (!record.is_object()) throw InputError(where, "is not a JSON object", "remove the line");
  return record;
}

// The last line is torn when it has no newline, or when a crash of the machine left it with bytes that are no record.
std::vector<Line> parse_lines(std::string_view bytes, const std::filesystem::path& path) {
  std::vector<Line> lines;
  for (size_t number = 1, at = 0; at < bytes.size(); ++number) {
    const size_t end = bytes.find('\n', at);
    if (end == std::string_view::npos) break;
    const std::string_view text = bytes.substr(at, end - at);
    at = end + 1;
    try {
      lines.push_back({text, parse_record(text, path.string() + " line " + std::to_string(number))});
    } catch (const InputError&) {
      if (at < bytes.size()) throw;
    }
  }
  return lines;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& path, std::optional<int64_t> resume_at) : path_(path) {
  const bool keep = resume_at && std::filesystem::exists(path);
  if (keep) {
    const std::string before = read_file(path, kMaxFileBytes);
    std::string kept;
    for (const Line& line : parse_lines(before, path)) {
      if (metric(line.record, "step") <= static_cast<double>(*resume_at)) kept.append(line.text).push_back('\n');
    }
    if (kept != before) write_file_atomic(path, kept);
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC), 0644);
  if (fd_ < 0) {
    throw EnvironmentError(path.string(), std::string("cannot be written: ") + std::strerror(errno),
                           "check the folder's permissions");
  }
}

MetricsWriter::~MetricsWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsWriter::append(const Metrics& record) {
  Json object = Json::object();
  for (const auto& [key, value] : record) {
    if (value == std::floor(value) && std::abs(value) < 0x1p53) {
      object[key] = static_cast<int64_t>(value);
    } else {
      object[key] = value;
    }
  }
  append(object);
}

void MetricsWriter::append(const Json& record) {
  TRANSEPT_CHECK(record.is_object());
  // dump writes NaN and infinities as null.
  write_line(record.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
}

void MetricsWriter::write_line(std::string line) {
  ssize_t n;
  do {
    n = ::write(fd_, line.data(), line.size());
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(line.size())) return;
  const int code = n < 0 ? errno : ENOSPC;
  if (n > 0) {  // a disk that filled up within the line: take the part back
    const off_t end = ::lseek(fd_, 0, SEEK_END);
    [[maybe_unused]] const int undone = ::ftruncate(fd_, end - n);  // if not, the readers leave the torn line out
  }
  throw EnvironmentError(path_.string(), std::string("writing failed: ") + std::strerror(code),
                         code == ENOSPC ? "free some space" : "");
}

void MetricsWriter::sync() {
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    throw EnvironmentError(path_.string(), std::string("could not be stored: ") + std::strerror(errno));
  }
}

std::vector<Json> read_metrics(const std::filesystem::path& path) {
  std::vector<Json> records;
  const std::string bytes = read_file(path, kMaxFileBytes);
  for (Line& line : parse_lines(bytes, path)) records.push_back(std::move(line.record));
  return records;
}

double metric(const Json& record, std::string_view key) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  if (!record.is_object()) return nothing;
  const auto found = record.find(std::string(key));
  return found != record.end() && found->is_number() ? found->get<double>() : nothing;
}

}  // namespace transept
