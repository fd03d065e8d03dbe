// What a model keeps between texts, lent to one thread at a time; as many exist as threads have asked at once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "text/token_model.h"

namespace transept {

class ScratchPool {
 public:
  explicit ScratchPool(const TokenModel& model) : model_(model) {}

  // Calls use(scratch).
  template <class Use>
  void lend(const Use& use) {
    std::unique_ptr<ModelScratch> scratch;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        scratch = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!scratch) scratch = model_.make_scratch();
    use(*scratch);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  const TokenModel& model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ModelScratch>> free_;
};

}  // namespace transept
