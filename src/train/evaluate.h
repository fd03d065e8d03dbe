// Loss of a model on held-out text, by the objective that it was trained with. Causal, on a stream: every token after
// the first is scored exactly once (where documents are separate, every token after the first of each).
//   stride == context: disjoint windows; each feeds `context` tokens and scores what follows each of them, as training
//   does. stride < context:  sliding windows of `context` tokens; each window after the first scores only its last
//   `stride` tokens, which so have at least
//                      context - stride tokens before them.
// The other objectives: disjoint windows, as training reads them, and what is left at the end; corrupted by draws that
// are always the same. The mean is over scored tokens, never over windows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/examples.h"
#include "nn/model.h"

namespace transept {

struct EvalOptions {
  int64_t context = 0;
  int64_t stride = 0;           // 0: context; causal streams only
  int64_t max_tokens = 0;       // of the text at the most, from the beginning; 0: all
  int64_t batch_tokens = 4096;  // tokens of a forward pass
  ExampleOptions examples = {};
  const Vocabulary* vocabulary = nullptr;  // null: causal only
  std::function<void(int64_t done, int64_t total)> progress;
};

struct EvalResult {
  double loss = 0;  // nats a token
  int64_t tokens_scored = 0;
  int64_t bytes_scored = 0;  // of the scored tokens' text; 0 without a tokenizer, or where what is scored is not
                             // the text itself (mlm, span, denoise)
  std::vector<double> loss_by_position;  // mean over tokens fed at this index of a sequence; NaN where none was scored
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
