// What a model takes of memory, beside what the program takes whatever the model.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace transept {

class MemoryWatch {
 public:
  // Before the model is made: what stands now is the program's own. The first products, which bring in the math
  // library's code and its scratch in each thread, are run here.
  explicit MemoryWatch(ThreadPool& pool);

  // Bytes of the highest resident memory since then, beyond the program's own.
  int64_t peak() const;

 private:
  int64_t base_;
};

}  // namespace transept
