// Training batches as a pure function of (seed, index): nothing to save, so that a resumed run sees the batches of an
// uninterrupted one.
#pragma once

#include <cstdint>

#include "data/examples.h"

namespace transept {

// kStream: an epoch visits every window once, in a pseudo-random order, and a random phase an epoch moves the cuts.
// Causal windows hold context + 1 tokens and neighbours share one, so that each token is a target once; others hold
// window_tokens(objective, context, vocabulary) and share none. kLines: an epoch visits every document once, cut after
// the longest example. kPairs: an epoch visits every pair once; the objective is kSeq2seq.
class Sampler {
 public:
  // The vocabulary must outlive it. The options fit together (check_examples).
  Sampler(const Split& split, int64_t context, int64_t batch, uint64_t seed, const ExampleOptions& options,
          const Vocabulary& vocabulary);

  // Micro-batch k of step s is batch(s * accumulation + k).
  Batch batch(uint64_t index) const;

  int64_t units_per_epoch() const { return units_; }  // windows, documents or pairs

 private:
  Split split_;
  int64_t context_, batch_;
  uint64_t seed_;
  ExampleOptions options_;
  const Vocabulary* vocabulary_;
  int64_t window_, stride_;  // of a stream
  int64_t units_;
};

}  // namespace transept
