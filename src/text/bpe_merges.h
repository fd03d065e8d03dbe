// The merges of a byte-pair vocabulary (Sennrich, Haddow and Birch, 2016, arXiv 1508.07909): of all neighbours that
// have a merge, those of the lowest rank become one, the leftmost of them first, until none has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace transept {

class BpeMerges {
 public:
  struct Symbol {
    int32_t id;
    uint32_t bytes;  // its length in the word
  };
  // What merging needs beside the symbols; kept so that nothing is allocated a word.
  struct Scratch {
    std::vector<uint32_t> ranks, previous, next;
    std::vector<uint64_t> heap;
  };

  BpeMerges() = default;
  explicit BpeMerges(size_t expected) { reserve(expected); }

  // `left` and `right` become `id`. Of two merges of one pair the later holds. Ranks need not differ.
  void insert(int32_t left, int32_t right, uint32_t rank, int32_t id);
  size_t size() const { return size_; }

  // Merges in place. `symbols` are fewer than 2^32.
  void apply(std::vector<Symbol>& symbols, Scratch& scratch) const;

  // The two ways of `apply`, which give the same; public for their test. `apply` takes the first up to kFewSymbols.
  void apply_by_scanning(std::vector<Symbol>& symbols, Scratch& scratch) const;  // n^2, on a few symbols the faster
  void apply_by_heap(std::vector<Symbol>& symbols, Scratch& scratch) const;      // n log n
  static constexpr size_t kFewSymbols = 48;

 private:
  struct Merge {
    uint64_t pair = kFree;
    uint32_t rank = kNoMerge;
    int32_t id = 0;
  };
  static constexpr uint64_t kFree = UINT64_MAX;  // ids are not negative
  static constexpr uint32_t kNoMerge = UINT32_MAX;

  static uint64_t pair_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  void reserve(size_t merges);
  size_t slot_of(uint64_t pair) const;
  // A free entry, whose rank is kNoMerge, where the pair has no merge.
  const Merge& find(int32_t left, int32_t right) const { return slots_[slot_of(pair_of(left, right))]; }

  std::vector<Merge> slots_{Merge{}};  // a power of two, at most half of them taken
  size_t size_ = 0;
};

}  // namespace transept
