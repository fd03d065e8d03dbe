// Sequences as vectors: their last hidden states, pooled; those of the encoder where there is one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/model.h"

namespace transept {

struct EmbedOptions {
  Pooling pooling = Pooling::kMean;
  bool pooler = false;     // the model's linear layer and tanh behind the pooling
  bool normalize = false;  // to length 1 (sentence-transformers' module of that name)
};
// As the spec says.
EmbedOptions embed_options(const ArchSpec& spec);

// A vector [hidden] for each sequence, all of one pass; they do not see each other. InputError when one is empty, too
// long or has a token outside the vocabulary.
std::vector<std::vector<float>> embed_sequences(const Model& model, ThreadPool& pool,
                                                std::span<const std::vector<int32_t>> sequences,
                                                const EmbedOptions& options);

}  // namespace transept
