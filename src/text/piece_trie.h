// The pieces of a vocabulary as a trie over bytes: all pieces that begin at a place of a text, shortest first.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_hash.h"

namespace transept {

class PieceTrie {
 public:
  PieceTrie();

  // The value that the piece (not empty) has from now on, not negative.
  void insert(std::string_view piece, int32_t value);

  // Calls found(length, value) for each piece that `text` begins with, shortest first.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == kNone) return;
      if (values_[node] >= 0) found(i + 1, values_[node]);
    }
  }
  // Length and value of the longest one; length 0 where there is none.
  std::pair<size_t, int32_t> longest(std::string_view text) const {
    std::pair<size_t, int32_t> best{0, -1};
    prefixes(text, [&](size_t length, int32_t value) { best = {length, value}; });
    return best;
  }
  // Whether a piece begins with this byte.
  bool starts(unsigned char byte) const { return roots_[byte] != kNone; }

 private:
  static constexpr uint32_t kNone = 0;  // the root is nobody's child
  struct Edge {
    uint64_t key;  // node * 256 + byte + 1; 0 is free
    uint32_t child;
  };

  uint32_t child(uint32_t node, unsigned char byte) const {
    return node == 0 ? roots_[byte] : edges_[slot_of(node, byte)].child;
  }
  size_t slot_of(uint32_t node, unsigned char byte) const {
    const uint64_t key = uint64_t{node} * 256 + byte + 1;
    const size_t mask = edges_.size() - 1;
    size_t at = mix_bits(key, 0xA0761D6478BD642F) & mask;
    while (edges_[at].key != 0 && edges_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  std::array<uint32_t, 256> roots_{};
  std::vector<Edge> edges_;  // a power of two, at most half of them taken
  size_t taken_ = 0;
  std::vector<int32_t> values_;  // of each node; -1: no piece ends there
};

}  // namespace transept
