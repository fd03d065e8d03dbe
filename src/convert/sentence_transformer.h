// What sentence-transformers keeps beside a model: how its hidden states become an embedding.
#pragma once

#include <filesystem>
#include <optional>

#include "spec/arch_spec.h"

namespace transept {

struct SentencePooling {
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
};
// From 1_Pooling/config.json and modules.json; nothing when the folder has no such files. InputError when they ask for
// a pooling that is neither the mean nor the first token.
std::optional<SentencePooling> read_sentence_pooling(const std::filesystem::path& folder);

}  // namespace transept
