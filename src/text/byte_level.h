// The characters by which byte-level vocabularies write bytes (GPT-2, encoder.py, bytes_to_unicode): the printable
// characters of Latin-1 stand for themselves, the other 68 bytes are U+0100 ... U+0143 in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transept {

uint32_t byte_level_code_point(uint8_t byte);                 // at most U+0143
std::optional<uint8_t> byte_level_byte(uint32_t code_point);  // none: no byte is written so

// One character a byte, as UTF-8.
std::string to_byte_level(std::string_view bytes);
// The bytes that a valid UTF-8 text stands for; none when it holds a character that stands for no byte.
std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace transept
