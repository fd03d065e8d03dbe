// Strings that tokenizers stumble over.
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"

namespace transept {

inline std::string utf8_of(uint32_t point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | (point >> 6)), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | (point >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (point >> 18)), tail(12), tail(6), tail(0)};
}

// Valid UTF-8 of `characters` characters: letters, runs of spaces, line ends, controls, and any code point.
inline std::string random_utf8(const CounterRng& rng, uint64_t& draw, uint64_t characters) {
  std::string text;
  for (uint64_t i = 0; i < characters; ++i) {
    switch (rng.below(draw++, 8)) {
      case 0:
      case 1:
      case 2:
        text += static_cast<char>('a' + rng.below(draw++, 26));
        break;
      case 3:
        text += ' ';
        break;
      case 4:
        text += utf8_of(static_cast<uint32_t>(rng.below(draw++, 128)));
        break;
      case 5:
        text += utf8_of(static_cast<uint32_t>(0x2570 + rng.below(draw++, 0x30)));
        break;  // U+2581 and its neighbours
      case 6: {
        uint32_t point = static_cast<uint32_t>(rng.below(draw++, 0x110000));
        if (point >= 0xD800 && point < 0xE000) point = 0xFFFD;
        text += utf8_of(point);
        break;
      }
      default:
        text += static_cast<char>("\n\t\r 0"[rng.below(draw++, 5)]);
        break;
    }
  }
  return text;
}

inline std::string random_bytes(const CounterRng& rng, uint64_t& draw, uint64_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng.below(draw++, 256));
  return text;
}

inline std::vector<std::string> awkward_texts() {
  return {"",
          " ",
          "  ",
          "\n",
          "\n\n\n ",
          "a",
          " a",
          "a ",
          "  two  spaces  ",
          "tab\there\r\n",
          "\xE2\x96\x81",
          "a\xE2\x96\x81 \xE2\x96\x81",
          "<0x0A>",
          "<s>",
          "</s> <unk> <pad>",
          "<|bos|>x<|eos|>",
          "12345 67",
          std::string("nul\0nul", 7),
          "\xEF\xBB\xBF"
          "bom",
          "e\xCC\x81 \xC3\xA9",
          "\xF0\x9F\x8E\x89\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
          "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E",
          "\xEF\xBF\xBD",
          "\xEF\xBF\xBE",
          "\xE2\x81\x87",
          "\xE2\x96\x85",
          "\xC2\xA0\xE3\x80\x80\xE2\x80\x8B"};
}

}  // namespace transept
