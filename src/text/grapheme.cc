#include "text/grapheme.h"

#include "text/unicode.h"

namespace transept {
namespace {

enum Break : uint32_t {
  kOther,
  kCR,
  kLF,
  kControl,
  kExtend,
  kZwj,
  kRegional,
  kPrepend,
  kSpacing,
  kL,
  kV,
  kT,
  kLV,
  kLVT
};
constexpr uint32_t kBreakMask = 0x0F, kPictographic = 0x10;

// Rules GB3 to GB9b, which look at two neighbours.
bool joined(uint32_t left, uint32_t right) {
  if (left == kCR) return right == kLF;
  if (left == kLF || left == kControl) return false;
  switch (right) {
    case kExtend:
    case kZwj:
    case kSpacing:
      return true;
    case kCR:
    case kLF:
    case kControl:
      return false;
    case kL:
    case kLV:
    case kLVT:
      return left == kL || left == kPrepend;
    case kV:
      return left == kL || left == kLV || left == kV || left == kPrepend;
    case kT:
      return left == kLV || left == kV || left == kLVT || left == kT || left == kPrepend;
    default:
      return left == kPrepend;
  }
}

}  // namespace

size_t grapheme_end(std::string_view text, size_t at) {
  using namespace unicode_tables;
  bool pictographic = false;  // a pictograph and extensions stand before; GB11
  size_t regionals = 0;       // regional indicators right before; GB12, GB13
  uint32_t left = 0;
  for (const size_t begin = at; at < text.size();) {
    const Character character = character_at(text, at);
    const uint32_t value = look_up(kGraphemeBlocks, kGraphemeValues, character.point);
    const uint32_t right = value & kBreakMask;
    if (at > begin && !joined(left, right) && !(left == kZwj && pictographic && (value & kPictographic)) &&
        !(right == kRegional && regionals % 2 == 1)) {
      break;
    }
    pictographic = (value & kPictographic) || (pictographic && (right == kExtend || right == kZwj));
    regionals = right == kRegional ? regionals + 1 : 0;
    left = right;
    at += character.length;
  }
  return at;
}

}  // namespace transept
