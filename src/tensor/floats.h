// A large owned array of floats: zeroed, aligned to a page, in huge pages where the system has them. For what lives as
// long as a model: parameters, gradients, optimizer moments, caches.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace transept {

class Floats {
 public:
  Floats() = default;
  explicit Floats(int64_t count);  // EnvironmentError when the memory cannot be had
  ~Floats();
  Floats(Floats&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Floats& operator=(Floats&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  float* data() const { return data_; }
  int64_t size() const { return count_; }
  std::span<float> span() const { return {data_, static_cast<size_t>(count_)}; }

 private:
  float* data_ = nullptr;
  int64_t count_ = 0;
};

}  // namespace transept
