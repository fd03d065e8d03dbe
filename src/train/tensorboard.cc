#include "train/tensorboard.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>

#include "base/file.h"

namespace transept {
namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}();

template <class T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

// Protocol buffer fields: a varint tag (number << 3 | wire type), then the value.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_tag(std::string& out, uint32_t field, WireType type) { put_varint(out, (field << 3) | type); }

void put_int(std::string& out, uint32_t field, int64_t value) {
  put_tag(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_double(std::string& out, uint32_t field, double value) {
  put_tag(out, field, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value));
}

void put_float(std::string& out, uint32_t field, float value) {
  put_tag(out, field, kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value));
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_tag(out, field, kBytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& folder, std::function<double()> wall_time)
    : wall_time_(wall_time ? std::move(wall_time) : system_seconds) {
  make_writable_folder(folder);
  // TensorBoard reads the files of a folder in the order of their names, and knows them by "tfevents".
  int serial = 0;
  do {
    path_ = folder /
            fmt::format("events.out.tfevents.{:010d}.{:04d}.transept", static_cast<int64_t>(wall_time_()), serial++);
  } while (std::filesystem::exists(path_));
  file_ = std::make_unique<FileWriter>(path_);
  std::string payload;
  put_bytes(payload, 3, "brain.Event:2");
  write_event(0, payload);
}

TensorBoardWriter::~TensorBoardWriter() = default;

void TensorBoardWriter::scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary, payload;
  for (const auto& [tag, value] : values) {
    std::string entry;
    put_bytes(entry, 1, tag);
    put_float(entry, 2, static_cast<float>(value));
    put_bytes(summary, 1, entry);
  }
  put_bytes(payload, 5, summary);
  write_event(step, payload);
}

void TensorBoardWriter::resumed(int64_t first_step) {
  std::string session, payload;
  put_int(session, 1, 1);  // SessionLog.START
  put_bytes(payload, 7, session);
  write_event(first_step, payload);
}

void TensorBoardWriter::write_event(int64_t step, std::string_view payload) {
  std::string event, record;
  put_double(event, 1, wall_time_());
  if (step != 0) put_int(event, 2, step);
  event.append(payload);
  put_little_endian(record, uint64_t{event.size()});
  put_little_endian(record, masked_crc32c(record));
  record.append(event);
  put_little_endian(record, masked_crc32c(event));
  file_->write(record);
}

}  // namespace transept
