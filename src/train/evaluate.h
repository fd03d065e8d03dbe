// Loss of a model on a token stream. Every token after the first is scored exactly once.
//   stride == context: disjoint windows; each feeds `context` tokens and scores what follows each of them, as training
//   does. stride < context:  sliding windows of `context` tokens; each window after the first scores only its last
//   `stride` tokens, which so have at least
//                      context - stride tokens before them.
// The mean is over scored tokens, never over windows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/corpus.h"
#include "nn/model.h"

namespace transept {

struct EvalOptions {
  int64_t context = 0;
  int64_t stride = 0;           // 0: context
  int64_t max_tokens = 0;       // scored at the most, from the beginning; 0: all
  int64_t batch_tokens = 4096;  // tokens of a forward pass
  std::function<void(int64_t done, int64_t total)> progress;
};

struct EvalResult {
  double loss = 0;  // nats a token
  int64_t tokens_scored = 0;
  int64_t bytes_scored = 0;              // of the scored tokens' text; 0 without a tokenizer
  std::vector<double> loss_by_position;  // mean over tokens fed at this index of a window; NaN where none was scored
  std::vector<int64_t> tokens_by_position;
  double perplexity() const;
  double bits_per_byte() const;  // NaN without bytes
};

// `tokenizer` may be null. InputError when the split is shorter than two tokens, or the options do not fit together.
// `op` has no tape; its arena is used for the passes, so that an evaluation on the way takes no memory beside
// training's.
EvalResult evaluate(const Model& model, const OpContext& op, const Split& split, const Tokenizer* tokenizer,
                    const EvalOptions& options);

}  // namespace transept
