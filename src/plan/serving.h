// The work of one decode step: what is read and computed for each token that is written, and how many sequences fit.
#pragma once

#include <cstdint>

#include "plan/flops.h"
#include "plan/memory.h"

namespace transept {

// One decode step of `batch` sequences that all stand at `context`: the weights are read once a step, each cache once
// a token. Of experts, those that a batch of independent, evenly spread choices is expected to touch.
struct ServingWork {
  int64_t weight_bytes_per_step = 0;
  int64_t kv_bytes_per_decoded_token = 0;
  double bytes_per_decoded_token = 0;
  double flops_per_decoded_token = 0;
  double arithmetic_intensity = 0;  // FLOPs a byte
  int64_t memory_bytes = 0;         // as asked
  int64_t largest_batch = 0;        // sequences at `context` that fit into memory_bytes; 0: none, or not asked
};

struct ServingSetup {
  int64_t batch = 1, context = 1, source_context = 0;
  WeightFormat weights;
  int64_t memory_bytes = 0;  // of the machine; 0: not asked
};

ServingWork count_serving(const ArchSpec& spec, const ParameterCounts& parameters, const CacheSize& cache,
                          const MemoryNeeds& memory, const ServingSetup& setup);

}  // namespace transept
