// Activation memory: one reserved address range from which buffers are cut best-fit and returned as soon as their last
// user is gone, so that later activations reuse the pages of earlier ones. The high-water mark is what the planner
// predicts and reports show. Deterministic: the same sequence of requests gives the same offsets. Not thread-safe: ops
// allocate before they go parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace transept {

class Arena {
 public:
  // Reserves address space only; pages are taken when first written. EnvironmentError when the range cannot be
  // reserved.
  explicit Arena(size_t reserve_bytes = size_t{1} << 40);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  static constexpr size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

  void* allocate(size_t bytes);  // uninitialized; bytes >= 1. EnvironmentError beyond the reserve
  void release(void* p);

  size_t live_bytes() const { return live_; }
  size_t peak_bytes() const { return peak_; }  // highest offset ever used
  void reset_peak();

 private:
  std::byte* base_ = nullptr;
  size_t reserve_ = 0, end_ = 0, live_ = 0, peak_ = 0;
  std::map<size_t, size_t> used_, free_;         // offset -> bytes
  std::set<std::pair<size_t, size_t>> by_size_;  // (bytes, offset) of the free blocks
};

// A shared handle to floats of an arena; the memory returns to it with the last handle. The arena must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Arena& arena, int64_t floats)
      : data_(static_cast<float*>(arena.allocate(static_cast<size_t>(floats) * sizeof(float))),
              [&arena](float* p) { arena.release(p); }),
        size_(floats) {}
  float* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  bool unique() const { return data_.use_count() == 1; }
  explicit operator bool() const { return data_ != nullptr; }
  void reset() {
    data_.reset();
    size_ = 0;
  }

 private:
  std::shared_ptr<float> data_;
  int64_t size_ = 0;
};

}  // namespace transept
