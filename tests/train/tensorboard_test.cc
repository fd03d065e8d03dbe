// CRC-32C known answers (RFC 3720, appendix B.4) and a byte-level decode of what the writer wrote, by a decoder of the
// test's own.
#include "train/tensorboard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/file.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

TEST(Crc32c, KnownAnswers) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(crc32c(descending), 0x113fdb5cu);
}

// The bits of the checksum of a record of length 24, as TensorFlow writes its first ("brain.Event:2") record.
TEST(Crc32c, MaskOfTheUsualFirstRecord) {
  const std::string length("\x18\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(masked_crc32c(length), 0x224b7fa3u);
}

struct Field {
  uint64_t number = 0, type = 0, integer = 0;
  std::string bytes;
};

// A message's fields, or nothing when it is malformed.
std::optional<std::vector<Field>> decode(std::string_view in) {
  std::vector<Field> fields;
  size_t at = 0;
  const auto varint = [&]() -> std::optional<uint64_t> {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= in.size()) return std::nullopt;
      const unsigned char c = static_cast<unsigned char>(in[at++]);
      v |= uint64_t{c & 0x7fu} << shift;
      if (c < 0x80) return v;
    }
    return std::nullopt;
  };
  while (at < in.size()) {
    Field field;
    const auto tag = varint();
    if (!tag) return std::nullopt;
    field.number = *tag >> 3;
    field.type = *tag & 7;
    if (field.type == 0) {
      const auto v = varint();
      if (!v) return std::nullopt;
      field.integer = *v;
    } else {
      size_t size = field.type == 1 ? 8 : 4;
      if (field.type == 2) {
        const auto v = varint();
        if (!v) return std::nullopt;
        size = *v;
      } else if (field.type != 1 && field.type != 5) {
        return std::nullopt;
      }
      if (size > in.size() - at) return std::nullopt;
      field.bytes = std::string(in.substr(at, size));
      at += size;
    }
    fields.push_back(field);
  }
  return fields;
}

template <class T>
T from_bytes(std::string_view bytes) {
  T value;
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The records of a TFRecord file, or nothing when a length or a checksum is wrong.
std::optional<std::vector<std::string>> read_records(std::string_view in) {
  std::vector<std::string> records;
  while (!in.empty()) {
    if (in.size() < 12) return std::nullopt;
    const auto length = from_bytes<uint64_t>(in.substr(0, 8));
    if (from_bytes<uint32_t>(in.substr(8, 4)) != masked_crc32c(in.substr(0, 8))) return std::nullopt;
    if (length + 16 > in.size()) return std::nullopt;
    records.emplace_back(in.substr(12, length));
    if (from_bytes<uint32_t>(in.substr(12 + length, 4)) != masked_crc32c(records.back())) return std::nullopt;
    in.remove_prefix(16 + length);
  }
  return records;
}

class TensorBoardTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = fs::temp_directory_path() / ("transept_events_" + std::to_string(::getpid())); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(TensorBoardTest, EventsDecode) {
  TensorBoardWriter writer(folder_, [] { return 1700000000.5; });
  writer.scalars(300, {{"train/loss", 2.5}, {"train/grad_norm", std::numeric_limits<double>::infinity()}});
  writer.resumed(301);
  const auto records = read_records(read_file(writer.path(), 1 << 20));
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 3u);

  const auto first = decode((*records)[0]);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->size(), 2u);
  EXPECT_EQ((*first)[0].number, 1u);
  EXPECT_EQ(from_bytes<double>((*first)[0].bytes), 1700000000.5);
  EXPECT_EQ((*first)[1].number, 3u);
  EXPECT_EQ((*first)[1].bytes, "brain.Event:2");

  const auto second = decode((*records)[1]);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->size(), 3u);
  EXPECT_EQ((*second)[1].number, 2u);
  EXPECT_EQ((*second)[1].integer, 300u);
  EXPECT_EQ((*second)[2].number, 5u);
  const auto summary = decode((*second)[2].bytes);
  ASSERT_TRUE(summary);
  ASSERT_EQ(summary->size(), 2u);
  const auto loss = decode((*summary)[0].bytes), norm = decode((*summary)[1].bytes);
  ASSERT_TRUE(loss && norm);
  ASSERT_EQ(loss->size(), 2u);
  EXPECT_EQ((*loss)[0].bytes, "train/loss");
  EXPECT_EQ((*loss)[0].number, 1u);
  EXPECT_EQ((*loss)[1].number, 2u);
  EXPECT_EQ((*loss)[1].type, 5u);
  EXPECT_EQ(from_bytes<float>((*loss)[1].bytes), 2.5f);
  EXPECT_TRUE(std::isinf(from_bytes<float>((*norm)[1].bytes)));

  const auto third = decode((*records)[2]);
  ASSERT_TRUE(third);
  EXPECT_EQ((*third)[1].integer, 301u);
  EXPECT_EQ((*third)[2].number, 7u);
  EXPECT_EQ((*third)[2].bytes, std::string("\x08\x01", 2));
}

TEST_F(TensorBoardTest, ChecksumCatchesAFlippedBit) {
  TensorBoardWriter writer(folder_);
  writer.scalars(1, {{"loss", 1.0}});
  const std::string good = read_file(writer.path(), 1 << 20);
  ASSERT_TRUE(read_records(good));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_FALSE(read_records(bad)) << "byte " << i;
  }
}

TEST_F(TensorBoardTest, FilesOfOneSecondSortInOrder) {
  const auto clock = [] { return 1700000000.0; };
  const TensorBoardWriter a(folder_, clock), b(folder_, clock);
  EXPECT_LT(a.path().string(), b.path().string());
  EXPECT_NE(a.path().filename().string().find("tfevents"), std::string::npos);
}

}  // namespace
}  // namespace transept
