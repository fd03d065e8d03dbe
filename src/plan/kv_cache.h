// Bytes of the cache of keys and values, or of latents: what generation keeps of each token that it has read.
#pragma once

#include <cstdint>

#include "plan/stored_type.h"
#include "spec/arch_spec.h"

namespace transept {

struct CacheSize {
  int64_t elements_per_token = 0;
  int64_t source_elements_per_token = 0;      // of cross-attention
  int64_t multi_head_elements_per_token = 0;  // if each query head had keys and values of its own
  int64_t bytes_per_token = 0;                // while no window is full
  int64_t bytes = 0;                          // of one sequence at the context, its source included
  int64_t batch_bytes = 0;                    // of all sequences
};

// A layer with a window keeps a ring of as many tokens as it sees.
CacheSize count_cache(const ArchSpec& spec, int64_t context, int64_t source_context, int64_t batch,
                      const StoredType& type);

}  // namespace transept
