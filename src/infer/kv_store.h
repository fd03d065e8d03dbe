// The cache of one or more sequences, which can branch: per layer a ring of records that holds what a later query can
// still see, so a layer with a sliding window of W keeps W records and one without keeps the whole context. The bytes
// are the planner's, exactly.
#pragma once

#include <cstdint>
#include <span>
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
  // From now on sequence s goes on from what sequence from[s] holds; those behind the last of `from` hold nothing. No
  // record moves that only one sequence goes on from, and sources are shared: none is appended before the next clear.
  void reorder(std::span<const int64_t> from);

 private:
  class Ring final : public KvView {
   public:
    Ring(float* data, int64_t width, int64_t capacity) : data_(data), width_(width), capacity_(capacity) {}
    std::span<const RecordChunk> chunks() override;
    void append(ConstRows records) override;
    void clear() { end_ = 0; }
    void copy_from(const Ring& other);  // of the same width and capacity

   private:
    float* data_;
    int64_t width_, capacity_;
    int64_t end_ = 0;  // positions appended so far; position p lies in slot p % capacity
    std::vector<RecordChunk> chunks_;
  };

  size_t ring(int64_t place, int64_t layer) const { return static_cast<size_t>(place * layers_ + layer); }

  int64_t context_, layers_;
  Floats storage_;
  std::vector<Ring> rings_, source_rings_;       // [place][layer]
  std::vector<int64_t> places_, source_places_;  // of each sequence
};

}  // namespace transept
