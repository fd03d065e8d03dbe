#include "text/piece_index.h"

#include <algorithm>
#include <bit>

#include "text/byte_hash.h"

namespace transept {

void PieceIndex::reserve(size_t entries) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(16, 2 * entries));
  if (wanted <= slots_.size()) return;
  slots_.assign(wanted, kFree);
  for (size_t i = 0; i < entries_.size(); ++i) slots_[slot_of(text(entries_[i]))] = static_cast<uint32_t>(i);
}

size_t PieceIndex::slot_of(std::string_view piece) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash_bytes(piece) & mask;
  while (slots_[at] != kFree && text(entries_[slots_[at]]) != piece) at = (at + 1) & mask;
  return at;
}

bool PieceIndex::insert(std::string_view piece, int32_t id) {
  reserve(entries_.size() + 1);
  const size_t at = slot_of(piece);
  if (slots_[at] != kFree) {
    const bool same = entries_[slots_[at]].id == id;
    entries_[slots_[at]].id = id;
    return same;
  }
  slots_[at] = static_cast<uint32_t>(entries_.size());
  entries_.push_back({bytes_.size(), static_cast<uint32_t>(piece.size()), id});
  bytes_ += piece;
  return true;
}

std::optional<int32_t> PieceIndex::find(std::string_view piece) const {
  if (slots_.empty()) return std::nullopt;
  const uint32_t entry = slots_[slot_of(piece)];
  return entry == kFree ? std::nullopt : std::optional(entries_[entry].id);
}

}  // namespace transept
