// The text that conversions are fitted to, where they look at what a model reads (convert/kv_calibration.h).
#pragma once

#include <cstdint>
#include <functional>

#include "data/sampler.h"

namespace transept {

// Gives `read` batches of the training part, in the order of `seed`: 16 tokens for each element of a token's vector,
// and 32,768 at the least, which a small model reads in seconds; all of it where it is shorter. How many tokens they
// had.
int64_t read_calibration_text(const Split& training, int64_t context, const ExampleOptions& examples,
                              const Vocabulary& vocabulary, uint64_t seed, int64_t hidden_size,
                              const std::function<void(const Batch&)>& read);

}  // namespace transept
