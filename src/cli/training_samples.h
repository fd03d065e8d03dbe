// What a model in training shows of itself: text for a decoder; for an encoder a held-out window with its best guesses;
// for an encoder-decoder a held-out source, its greedy answer and what was asked.
#pragma once

#include <string>

#include "base/thread_pool.h"
#include "data/sampler.h"
#include "text/tokenizer.h"
#include "train/loop.h"

namespace transept {

// Text that continues `prompt`, the same draws every time.
TrainingSample sample_text(const Model& model, ThreadPool& pool, const Tokenizer& tokenizer, const std::string& prompt);

// One example of the held-out part, the same every time, for objectives that read one. Guesses of an encoder stand in
// brackets in the place of the tokens that it was asked for. An answer ends with the end token, or with the context.
TrainingSample sample_example(const Model& model, ThreadPool& pool, const Tokenizer& tokenizer,
                              const Vocabulary& vocabulary, const Split& held_out, const TrainConfig& config);

}  // namespace transept
