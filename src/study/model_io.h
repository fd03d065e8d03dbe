// How a training run keeps its model: a model folder with its tokenizer beside it.
#pragma once

#include "text/tokenizer.h"
#include "train/checkpoint.h"

namespace transept {

// The tokenizer must outlive it.
ModelIo folder_io(const Tokenizer& tokenizer);

}  // namespace transept
