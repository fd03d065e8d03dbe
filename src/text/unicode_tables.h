// The generated tables of unicode_tables.cc and unicode_tables_normal.cc: two-stage tries (block of 128 code points,
// value in the block) and what their values point at. unicode.h, normal_form.h and grapheme.h give them meaning.
#pragma once

#include <cstddef>
#include <cstdint>

namespace transept::unicode_tables {

struct Decomposition {
  uint32_t point;
  uint16_t canonical_at;  // into kDecomposedPoints, in full
  uint8_t canonical_length;
  uint16_t compatible_at;
  uint8_t compatible_length;
};
struct Composition {
  uint32_t first, second, composed;
};

extern const uint32_t kTraitsOfKind[];
extern const uint16_t kTraitsBlocks[];
extern const uint8_t kTraitsValues[];
extern const uint32_t kAsciiTraits[];
extern const int32_t kLowerDeltas[];
extern const uint16_t kLowerBlocks[];
extern const uint8_t kLowerValues[];
extern const uint16_t kGraphemeBlocks[];
extern const uint8_t kGraphemeValues[];

extern const uint16_t kNormalBlocks[];
extern const uint16_t kNormalValues[];
extern const uint32_t kDecomposedPoints[];
extern const Decomposition kDecompositions[];  // by point
extern const size_t kDecompositionCount;
extern const Composition kCompositions[];  // by first, then second
extern const size_t kCompositionCount;

// `point` is at most U+10FFFF.
template <class Value>
Value look_up(const uint16_t* blocks, const Value* values, uint32_t point) {
  return values[size_t{128} * blocks[point >> 7] + (point & 127)];
}

}  // namespace transept::unicode_tables
