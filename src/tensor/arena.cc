#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/problem.h"

namespace transept {

Arena::Arena(size_t reserve_bytes) {
  // A machine with a limit on address space (ulimit -v) may refuse the first try. Less than this is no use to a caller
  // that wanted more.
  const size_t least = std::min(reserve_bytes, size_t{1} << 26);
  for (reserve_ = reserve_bytes; reserve_ >= least; reserve_ /= 2) {
    void* p = ::mmap(nullptr, reserve_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) {
      base_ = static_cast<std::byte*>(p);
      ::madvise(base_, reserve_, MADV_HUGEPAGE);
      return;
    }
  }
  throw EnvironmentError("memory", "no address space could be reserved for activations",
                         "raise the limit on virtual memory");
}

Arena::~Arena() { ::munmap(base_, reserve_); }

void* Arena::allocate(size_t bytes) {
  TRANSEPT_CHECK(bytes >= 1);
  if (bytes > reserve_)
    throw EnvironmentError("memory", "an activation of " + std::to_string(bytes) + " bytes does not fit",
                           "use a smaller batch or context");
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  size_t offset = 0;
  if (auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end()) {
    const auto [size, at] = *fit;
    by_size_.erase(fit);
    free_.erase(at);
    if (size > bytes) {
      free_[at + bytes] = size - bytes;
      by_size_.insert({size - bytes, at + bytes});
    }
    offset = at;
  } else {
    // Grow, starting in the last free block when it touches the end.
    const auto last = free_.empty() ? free_.end() : std::prev(free_.end());
    const bool touches = last != free_.end() && last->first + last->second == end_;
    offset = touches ? last->first : end_;
    if (bytes > reserve_ - offset)
      throw EnvironmentError("memory", "activations exceed the reserved address space",
                             "use a smaller batch or context");
    if (touches) {
      by_size_.erase({last->second, last->first});
      free_.erase(last);
    }
    end_ = offset + bytes;
  }
  used_[offset] = bytes;
  live_ += bytes;
  peak_ = std::max(peak_, offset + bytes);
  return base_ + offset;
}

void Arena::release(void* p) {
  size_t offset = static_cast<size_t>(static_cast<std::byte*>(p) - base_);
  const auto used = used_.find(offset);
  TRANSEPT_CHECK(used != used_.end());
  size_t bytes = used->second;
  used_.erase(used);
  live_ -= bytes;
  const auto next = free_.find(offset + bytes);
  if (next != free_.end()) {
    bytes += next->second;
    by_size_.erase({next->second, next->first});
    free_.erase(next);
  }
  if (auto at = free_.lower_bound(offset); at != free_.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  free_[offset] = bytes;
  by_size_.insert({bytes, offset});
}

void Arena::reset_peak() {
  peak_ = 0;
  for (const auto& [offset, bytes] : used_) peak_ = std::max(peak_, offset + bytes);
}

}  // namespace transept
