// FNV-1a in 64 bits (Fowler, Noll, Vo): tells two streams of numbers or bytes apart. No protection against those who
// want them alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace transept {

class Fnv1a {
 public:
  void add(uint64_t value) { h_ = (h_ ^ value) * 1099511628211ull; }
  void add_bytes(const void* data, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) add(at[i]);
  }
  uint64_t value() const { return h_; }

 private:
  uint64_t h_ = 14695981039346656037ull;
};

inline uint64_t fnv1a(std::string_view text) {
  Fnv1a hash;
  hash.add_bytes(text.data(), text.size());
  return hash.value();
}

}  // namespace transept
