// The pieces of a vocabulary as a hash table: bytes to id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

class PieceIndex {
 public:
  PieceIndex() = default;
  explicit PieceIndex(size_t expected) { reserve(expected); }

  // The id that the piece has from now on; false where it had another one before.
  bool insert(std::string_view piece, int32_t id);
  std::optional<int32_t> find(std::string_view piece) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    size_t begin;
    uint32_t length;
    int32_t id;
  };
  static constexpr uint32_t kFree = UINT32_MAX;

  void reserve(size_t entries);
  size_t slot_of(std::string_view piece) const;
  std::string_view text(const Entry& entry) const { return std::string_view(bytes_).substr(entry.begin, entry.length); }

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // a power of two, at most half of them taken
};

}  // namespace transept
