#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace transept {
namespace {

constexpr uint32_t kEnd = 0x144;  // past the last of the characters

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Tables {
  std::array<uint16_t, 256> point{};
  std::array<int16_t, kEnd> byte{};  // -1: none
};

constexpr Tables make_tables() {
  Tables tables;
  for (int16_t& byte : tables.byte) byte = -1;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t point = stands_for_itself(byte) ? byte : next++;
    tables.point[byte] = static_cast<uint16_t>(point);
    tables.byte[point] = static_cast<int16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t byte_level_code_point(uint8_t byte) { return kTables.point[byte]; }

std::optional<uint8_t> byte_level_byte(uint32_t code_point) {
  if (code_point >= kEnd || kTables.byte[code_point] < 0) return std::nullopt;
  return static_cast<uint8_t>(kTables.byte[code_point]);
}

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char byte : bytes) text += Utf8Character(byte_level_code_point(static_cast<uint8_t>(byte))).view();
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    const std::optional<uint8_t> byte = byte_level_byte(character.point);
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
    at += character.length;
  }
  return bytes;
}

}  // namespace transept
