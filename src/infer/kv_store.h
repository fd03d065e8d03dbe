// The cache of one or more sequences: per layer a ring of records that holds what a later query can still see, so a
// layer with a sliding window of W keeps W records and one without keeps the whole context. The bytes are the
// planner's, exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/forward_context.h"
#include "spec/arch_spec.h"
#include "tensor/floats.h"

namespace transept {

class KvStore final : public KvCache {
 public:
  // Room for `context` positions in each of `sequences` sequences and, with cross-attention, for `source_context`
  // records of its source.
  KvStore(const ArchSpec& spec, int64_t sequences, int64_t context, int64_t source_context = 0);

  KvView& view(int64_t sequence, int64_t layer) override;
  KvView& source_view(int64_t sequence, int64_t layer) override;
  int64_t context() const override { return context_; }
  int64_t bytes() const { return storage_.size() * static_cast<int64_t>(sizeof(float)); }
  // Forgets all records.
  void clear();

 private:
  class Ring final : public KvView {
   public:
    Ring(float* data, int64_t width, int64_t capacity) : data_(data), width_(width), capacity_(capacity) {}
    std::span<const RecordChunk> chunks() override;
    void append(ConstRows records) override;
    void clear() { end_ = 0; }

   private:
    float* data_;
    int64_t width_, capacity_;
    int64_t end_ = 0;  // positions appended so far; position p lies in slot p % capacity
    std::vector<RecordChunk> chunks_;
  };

  int64_t context_, layers_;
  Floats storage_;
  std::vector<Ring> rings_, source_rings_;  // [sequence][layer]
};

}  // namespace transept
