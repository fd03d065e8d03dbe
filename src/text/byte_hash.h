// A hash of short byte strings for the tables of this folder: 64-bit multiply and fold, eight bytes a step (the mixing
// step of wyhash, W. Yi, 2019). Not for strangers who pick keys to collide: a table built from a file bounds its size.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace transept {

inline uint64_t mix_bits(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kFirst = 0xA0761D6478BD642F, kSecond = 0xE7037ED1A0B428DB;
  const char* data = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = kFirst ^ left;
  for (; left > 8; left -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = mix_bits(hash ^ word, kSecond);
  }
  uint64_t last = 0;
  if (left >= 4) {
    uint32_t low, high;  // they overlap where fewer than eight bytes are left
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + left - 4, 4);
    last = uint64_t{high} << 32 | low;
  } else if (left > 0) {
    last = static_cast<uint64_t>(static_cast<unsigned char>(data[0])) << 16 |
           static_cast<uint64_t>(static_cast<unsigned char>(data[left / 2])) << 8 |
           static_cast<unsigned char>(data[left - 1]);
  }
  return mix_bits(hash ^ last, kSecond);
}

}  // namespace transept
