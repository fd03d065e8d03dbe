// The tokenizer of a model that is to be trained: as a person names it, or what suits the vocabulary.
#pragma once

#include <memory>
#include <string>

#include "data/corpus.h"
#include "data/objective.h"

namespace transept {

// `choice`: byte, bpe, bpe:SIZE, or a folder or file; empty: byte for vocabularies up to 1024, else bpe. A vocabulary
// of pieces is trained on `texts`. Objectives that mask or drop spans get the tokens that stand for what is gone: as
// many sentinels as `context` needs at least. InputError, under --tokenizer, when it does not fit into `vocab_size`.
std::unique_ptr<Tokenizer> choose_tokenizer(const std::string& choice, int64_t vocab_size, const TextFiles& texts,
                                            Objective objective, int64_t context);

}  // namespace transept
