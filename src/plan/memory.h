// Bytes that one process needs to train a model and to run it.
#pragma once

#include <cstdint>

#include "plan/activations.h"
#include "plan/kv_cache.h"
#include "plan/parameters.h"
#include "plan/training_types.h"
#include "plan/weight_format.h"

namespace transept {

struct MemoryNeeds {
  int64_t weights = 0;           // as the model is run
  int64_t training_weights = 0;  // as it is trained
  int64_t gradients = 0;
  int64_t master_weights = 0;  // float32 copies that the optimizer moves, where training is in 16 bits
  int64_t optimizer = 0;       // its moments
  int64_t activations = 0;     // training, at batch x context
  ActivationBytes activation_terms;
  int64_t logits = 0;               // of a chunk of tokens, among the activations
  int64_t fragmentation = 0;        // a margin for gaps that fit no buffer: see kFragmentation
  int64_t peak_training = 0;        // training weights, gradients, master weights, optimizer, activations
  int64_t inference_workspace = 0;  // see kPrefillRows
  int64_t peak_inference = 0;       // weights, cache of the batch, workspace
};

// A prompt is read in pieces of at most this many tokens, one sequence at a time; a decode step has one row a sequence.
inline constexpr int64_t kPrefillRows = 512;

// Of the activations; the largest that the arena left over many forms of layers (tests/plan/allocated_test.cc).
inline constexpr double kFragmentation = 0.12;

struct TrainingSetup {
  int64_t batch = 1, context = 1, source_context = 0;  // sequences, tokens
  Recompute recompute = Recompute::kNone;
  TrainingPrecision precision;
  OptimizerKind optimizer;
};

MemoryNeeds count_memory(const ArchSpec& spec, const ParameterCounts& parameters, const CacheSize& cache,
                         const TrainingSetup& training, const WeightFormat& weights);

}  // namespace transept
