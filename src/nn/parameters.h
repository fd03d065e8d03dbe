// The tensors of a model: one contiguous block of values in the order of ArchSpec::declare, and, when training, one of
// gradients with the same offsets. Every parameter starts on a cache line. Matrices of a model that is only run may
// stay in their checkpoint's file instead.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "ops/tape.h"
#include "spec/arch_spec.h"
#include "tensor/floats.h"

namespace transept {

// Matrices that stay as a checkpoint stores them, by name, and what keeps their bytes where they are.
struct StoredMatrices {
  struct Matrix {
    DType dtype = DType::kBF16;
    std::vector<StoredRows> rows;
  };
  std::unordered_map<std::string, Matrix> by_name;
  std::shared_ptr<const void> owner;
};
// Whether only products and look-ups read the parameter, which take it in either form.
bool may_stay_stored(const ParamDecl& decl);

class Parameters {
 public:
  // Of what is stored there are no values here, and no gradients: such a model is not trained.
  explicit Parameters(const ArchSpec& spec, StoredMatrices stored = {});

  struct Entry {
    ParamDecl decl;
    int64_t offset = 0;  // floats
    int64_t size = 0;
    const StoredMatrices::Matrix* stored = nullptr;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  int64_t count() const { return count_; }               // elements of all parameters, without padding
  int64_t block_size() const { return values_.size(); }  // with padding
  std::span<float> values() { return values_.span(); }
  std::span<float> gradients() { return gradients_.span(); }  // empty before enable_gradients
  // Not of what is stored.
  std::span<float> values(const Entry& e) {
    TRANSEPT_CHECK(!e.stored);
    return values_.span().subspan(static_cast<size_t>(e.offset), static_cast<size_t>(e.size));
  }
  std::span<float> gradients(const Entry& e) {
    return gradients_.span().subspan(static_cast<size_t>(e.offset), static_cast<size_t>(e.size));
  }

  void enable_gradients();
  void zero_gradients(ThreadPool& pool);

  const Entry* find(std::string_view name) const;
  // An absent Param when the model declares none of that name.
  Param param(std::string_view name) const;

  // Random initial values: a pure function of seed, the parameter's name and the element's index.
  void initialize(const ArchSpec& spec, uint64_t seed, ThreadPool& pool);

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> by_name_;
  int64_t count_ = 0;
  StoredMatrices stored_;
  Floats values_, gradients_;
};

}  // namespace transept
