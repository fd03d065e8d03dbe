#include "tensor/floats.h"

#include <sys/mman.h>

#include <string>

#include "base/check.h"
#include "base/problem.h"

namespace transept {

Floats::Floats(int64_t count) : count_(count) {
  TRANSEPT_CHECK(count >= 0);
  if (count == 0) return;
  // A product that wraps around would ask for a small piece of what is needed.
  const bool countable = static_cast<size_t>(count) <= SIZE_MAX / sizeof(float);
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  void* p = countable ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (p == MAP_FAILED) {
    throw EnvironmentError("memory", std::to_string(static_cast<size_t>(count) >> 18) + " MiB cannot be had",
                           "use a smaller model, or free memory");
  }
  ::madvise(p, bytes, MADV_HUGEPAGE);
  data_ = static_cast<float*>(p);
}

Floats::~Floats() {
  if (data_) ::munmap(data_, static_cast<size_t>(count_) * sizeof(float));
}

}  // namespace transept
