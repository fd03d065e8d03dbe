#include "text/piece_trie.h"

#include "base/check.h"

namespace transept {

PieceTrie::PieceTrie() : edges_(64, Edge{0, kNone}), values_{-1} {}

void PieceTrie::insert(std::string_view piece, int32_t value) {
  TRANSEPT_CHECK(!piece.empty() && value >= 0);
  uint32_t node = 0;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<uint32_t>(values_.size());
      values_.push_back(-1);
      if (node == 0) {
        roots_[byte] = next;
      } else {
        if (2 * (taken_ + 1) > edges_.size()) {
          std::vector<Edge> old(2 * edges_.size(), Edge{0, kNone});
          old.swap(edges_);
          for (const Edge& edge : old) {
            if (edge.key == 0) continue;
            const uint64_t key = edge.key - 1;
            edges_[slot_of(static_cast<uint32_t>(key / 256), static_cast<unsigned char>(key % 256))] = edge;
          }
        }
        edges_[slot_of(node, byte)] = {uint64_t{node} * 256 + byte + 1, next};
        ++taken_;
      }
    }
    node = next;
  }
  values_[node] = value;
}

}  // namespace transept
