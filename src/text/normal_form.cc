// A stretch that may not have the form lies between two characters that no normalization moves or joins to what stands
// before them; it is decomposed, put into canonical order, and composed again, and everything else is copied. A
// composed character is aligned as the first of its parts, as in the Rust library unicode-normalization-alignments.
#include "text/normal_form.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "text/unicode.h"
#include "text/unicode_tables.h"

namespace transept {
namespace {

using namespace unicode_tables;

// A value of kNormal: the combining class, and these.
constexpr uint32_t kClassMask = 0xFF;
constexpr uint32_t kHasCanonical = 0x100;   // NFD changes it
constexpr uint32_t kHasCompatible = 0x200;  // NFKD changes it
constexpr uint32_t kUnsafeC = 0x400;        // NFC may change it or join it to the one before
constexpr uint32_t kUnsafeKC = 0x800;

// Hangul syllables (The Unicode Standard 9.0, section 3.12).
constexpr uint32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11A7;
constexpr uint32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

struct Piece {
  uint32_t point;
  uint8_t combining_class;
  int change;  // as for Rewriter::put
};

uint32_t normal_class(uint32_t point) { return look_up(kNormalBlocks, kNormalValues, point); }

void decompose(uint32_t point, bool compatible, std::vector<Piece>& out) {
  int change = 0;
  const auto put = [&](uint32_t part) {
    out.push_back({part, static_cast<uint8_t>(normal_class(part) & kClassMask), change});
    change = 1;
  };
  if (!(normal_class(point) & (compatible ? kHasCompatible : kHasCanonical))) {
    put(point);
  } else if (point - kSyllable < kSyllables) {
    const uint32_t index = point - kSyllable;
    put(kLead + index / (kVowels * kTrails));
    put(kVowel + index % (kVowels * kTrails) / kTrails);
    if (index % kTrails != 0) put(kTrail + index % kTrails);
  } else {
    const Decomposition* row = std::lower_bound(kDecompositions, kDecompositions + kDecompositionCount, point,
                                                [](const Decomposition& a, uint32_t b) { return a.point < b; });
    const uint32_t* parts = kDecomposedPoints + (compatible ? row->compatible_at : row->canonical_at);
    const size_t length = compatible ? row->compatible_length : row->canonical_length;
    for (size_t i = 0; i < length; ++i) put(parts[i]);
  }
}

// 0 when the two do not compose.
uint32_t compose(uint32_t first, uint32_t second) {
  if (first - kLead < kLeads && second - kVowel < kVowels) {
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTrails;
  }
  if (first - kSyllable < kSyllables && (first - kSyllable) % kTrails == 0 && second - (kTrail + 1) < kTrails - 1) {
    return first + (second - kTrail);
  }
  const auto key = std::pair(first, second);
  const Composition* row = std::lower_bound(
      kCompositions, kCompositions + kCompositionCount, key,
      [](const Composition& a, const std::pair<uint32_t, uint32_t>& b) { return std::pair(a.first, a.second) < b; });
  const bool found = row != kCompositions + kCompositionCount && row->first == first && row->second == second;
  return found ? row->composed : 0;
}

// Canonical order: marks between two starters by their classes, those of one class as they stand. Counted, not
// compared, since nothing bounds their number.
void order(std::vector<Piece>& pieces) {
  const auto starts = [](const Piece& piece) { return piece.combining_class == 0; };
  const auto by_class = [](const Piece& a, const Piece& b) { return a.combining_class < b.combining_class; };
  for (auto at = std::find_if_not(pieces.begin(), pieces.end(), starts); at != pieces.end();) {
    const auto end = std::find_if(at, pieces.end(), starts);
    if (!std::is_sorted(at, end, by_class)) {
      const std::vector<Piece> marks(at, end);
      std::array<size_t, kClassMask + 2> place{};
      for (const Piece& mark : marks) ++place[mark.combining_class + 1u];
      std::partial_sum(place.begin(), place.end(), place.begin());
      for (const Piece& mark : marks) at[static_cast<ptrdiff_t>(place[mark.combining_class]++)] = mark;
    }
    at = std::find_if_not(end, pieces.end(), starts);
  }
}

// Composes what is in canonical order, in place (UAX 15, section 3.11, D117).
void compose(std::vector<Piece>& pieces) {
  size_t written = 0, starter = pieces.size();  // no starter yet
  int last_class = -1;                          // of the piece before, when it is not the starter itself
  for (size_t read = 0; read < pieces.size(); ++read) {
    const Piece piece = pieces[read];
    const bool reaches = starter < written && last_class < static_cast<int>(piece.combining_class);
    const uint32_t joined = reaches ? compose(pieces[starter].point, piece.point) : 0;
    if (joined != 0) {
      pieces[starter].point = joined;
      pieces[starter].change += piece.change - 1;
      continue;
    }
    if (piece.combining_class == 0) starter = written;
    last_class = piece.combining_class == 0 ? -1 : piece.combining_class;
    pieces[written++] = piece;
  }
  pieces.resize(written);
}

}  // namespace

void to_normal_form(AlignedText& text, NormalForm form) {
  const bool compatible = form == NormalForm::kKC || form == NormalForm::kKD;
  const bool composed = form == NormalForm::kC || form == NormalForm::kKC;
  const uint32_t unsafe =
      composed ? (compatible ? kUnsafeKC : kUnsafeC) : (compatible ? kHasCompatible : kHasCanonical);
  const std::string_view old = text.bytes();
  Rewriter rewriter(text);
  std::vector<Piece> pieces;
  size_t safe = 0;  // the last character that ends a stretch before it
  uint32_t last_class = 0;
  for (size_t at = 0; at < old.size();) {
    if (static_cast<unsigned char>(old[at]) < 0x80) {
      safe = at++;
      last_class = 0;
      continue;
    }
    const Character character = character_at(old, at);
    const uint32_t kind = normal_class(character.point), combining_class = kind & kClassMask;
    if (!(kind & unsafe) && (combining_class == 0 || combining_class >= last_class)) {
      if (combining_class == 0) safe = at;
      last_class = combining_class;
      at += character.length;
      continue;
    }
    rewriter.copy_to(safe);
    pieces.clear();
    for (at = safe; at < old.size();) {
      const Character next = character_at(old, at);
      if (at > safe && !(normal_class(next.point) & (unsafe | kClassMask))) break;
      decompose(next.point, compatible, pieces);
      at += next.length;
    }
    order(pieces);
    if (composed) compose(pieces);
    for (const Piece& piece : pieces) rewriter.put(piece.point, piece.change);
    safe = at;
    last_class = 0;
  }
  rewriter.finish(text);
}

}  // namespace transept
