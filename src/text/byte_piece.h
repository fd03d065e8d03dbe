// "<0x0A>", how vocabularies with byte fallback write a byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transept {

inline std::string byte_piece(uint8_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
}

inline std::optional<uint8_t> byte_of_piece(std::string_view piece) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const size_t high = digits.find(piece[3]), low = digits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

}  // namespace transept
