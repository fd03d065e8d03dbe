#include "text/bpe_merges.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "text/byte_hash.h"

namespace transept {

size_t BpeMerges::slot_of(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  size_t at = mix_bits(pair ^ 0xE7037ED1A0B428DB, 0xA0761D6478BD642F) & mask;
  while (slots_[at].pair != kFree && slots_[at].pair != pair) at = (at + 1) & mask;
  return at;
}

void BpeMerges::reserve(size_t merges) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(16, 2 * merges));
  if (wanted <= slots_.size()) return;
  std::vector<Merge> old(wanted);
  old.swap(slots_);
  for (const Merge& merge : old) {
    if (merge.pair != kFree) slots_[slot_of(merge.pair)] = merge;
  }
}

void BpeMerges::insert(int32_t left, int32_t right, uint32_t rank, int32_t id) {
  TRANSEPT_CHECK(left >= 0 && right >= 0 && id >= 0 && rank != kNoMerge);
  reserve(size_ + 1);
  Merge& merge = slots_[slot_of(pair_of(left, right))];
  if (merge.pair == kFree) ++size_;
  merge = {pair_of(left, right), rank, id};
}

void BpeMerges::apply(std::vector<Symbol>& symbols, Scratch& scratch) const {
  if (symbols.size() < 2) return;
  symbols.size() <= kFewSymbols ? apply_by_scanning(symbols, scratch) : apply_by_heap(symbols, scratch);
}

void BpeMerges::apply_by_scanning(std::vector<Symbol>& symbols, Scratch& scratch) const {
  std::vector<uint32_t>& ranks = scratch.ranks;  // of each symbol with the one behind it
  ranks.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) ranks.push_back(find(symbols[i].id, symbols[i + 1].id).rank);
  while (!ranks.empty()) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());
    if (*lowest == kNoMerge) return;
    const size_t at = static_cast<size_t>(lowest - ranks.begin());
    symbols[at] = {find(symbols[at].id, symbols[at + 1].id).id, symbols[at].bytes + symbols[at + 1].bytes};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    ranks.erase(lowest);
    if (at > 0) ranks[at - 1] = find(symbols[at - 1].id, symbols[at].id).rank;
    if (at < ranks.size()) ranks[at] = find(symbols[at].id, symbols[at + 1].id).rank;
  }
}

void BpeMerges::apply_by_heap(std::vector<Symbol>& symbols, Scratch& scratch) const {
  const uint32_t n = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t>&ranks = scratch.ranks, &previous = scratch.previous, &next = scratch.next;
  std::vector<uint64_t>& heap = scratch.heap;  // rank, then place: the lowest rank and the leftmost place come first
  ranks.assign(n, kNoMerge);
  previous.resize(n);
  next.resize(n);
  heap.clear();
  for (uint32_t i = 0; i < n; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1;
    if (i + 1 < n) ranks[i] = find(symbols[i].id, symbols[i + 1].id).rank;
    if (ranks[i] != kNoMerge) heap.push_back(uint64_t{ranks[i]} << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto renew = [&](uint32_t at) {
    ranks[at] = next[at] < n ? find(symbols[at].id, symbols[next[at]].id).rank : kNoMerge;
    if (ranks[at] == kNoMerge) return;
    heap.push_back(uint64_t{ranks[at]} << 32 | at);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint32_t at = static_cast<uint32_t>(heap.back()), rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    if (ranks[at] != rank) continue;  // one of the two has merged since
    const uint32_t right = next[at];
    symbols[at] = {find(symbols[at].id, symbols[right].id).id, symbols[at].bytes + symbols[right].bytes};
    symbols[right].bytes = 0;
    ranks[right] = kNoMerge;
    next[at] = next[right];
    if (next[at] < n) previous[next[at]] = at;
    renew(at);
    if (at > 0) renew(previous[at]);
  }
  // Symbols that merged into others have no bytes left; one that had none from the beginning cannot be told from them.
  std::erase_if(symbols, [](const Symbol& s) { return s.bytes == 0; });
}

}  // namespace transept
