// Training batches as a pure function of (seed, index): nothing to save, so that a resumed run sees the batches of an
// uninterrupted one.
#pragma once

#include <cstdint>
#include <vector>

#include "data/corpus.h"
#include "kernels/cross_entropy.h"

namespace transept {

struct Batch {
  int64_t sequences = 0, length = 0;
  std::vector<int32_t> tokens;   // [sequences, length]
  std::vector<int32_t> targets;  // [sequences, length]: the next token, kIgnoredTarget where there is none
  int64_t target_count = 0;      // targets that are not kIgnoredTarget
};

// kStream: an epoch visits every window of context + 1 tokens once, in a pseudo-random order; neighbouring windows
// share one token, so each token is a target once, and a random phase an epoch moves the cuts. length is always
// `context`. kLines: an epoch visits every document once, cut after context + 1 tokens; rows are padded to the longest
// of the batch.
class Sampler {
 public:
  Sampler(const Split& split, int64_t context, int64_t batch, uint64_t seed);

  // Micro-batch k of step s is batch(s * accumulation + k).
  Batch batch(uint64_t index) const;

  int64_t units_per_epoch() const { return units_; }  // windows or documents

 private:
  Split split_;
  int64_t context_, batch_;
  uint64_t seed_;
  int64_t units_;
};

}  // namespace transept
