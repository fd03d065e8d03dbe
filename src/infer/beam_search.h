// Beam search (arXiv:1409.3215 section 3.2): of all continuations of the hypotheses in the beam by one token, the
// likeliest N are kept; those that end leave the beam and join the finished ones. Hypotheses are ranked by
//
//   score = log P(answer | prompt) / ((5 + length) / 6)^alpha
//
// (arXiv:1609.08144 section 7), where length counts the answer's tokens and its end token. The hypotheses of the beam
// are branches of one decoder: a step is one pass over all of them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/generate.h"

namespace transept {

struct BeamOptions {
  int64_t beams = 4;          // N, 1 or more: with 1, greedy decoding
  double length_penalty = 1;  // alpha, 0 or more: with 0, the log-probability alone
  Problems check() const;     // what is out of range
};

struct Hypothesis {
  std::string text;
  std::vector<int32_t> tokens;  // without the end token
  std::string finish_reason;    // as a Generation's
  double score = 0;
};

struct BeamGeneration {
  Generation best;                // decode_tokens_per_second: of one hypothesis
  std::vector<Hypothesis> beams;  // the best N that were found, best first
};

// The search ends when no hypothesis in the beam can reach the worst of N finished ones, however it goes on. Those that
// reach the limit count as finished. `go_on` is asked between steps; when it says no, the beam counts as finished as it
// is. The decoder must have room for N branches; it is reset first. `options.sampling` is not looked at. InputError as
// by encode_prompt; EnvironmentError when logits are not finite.
BeamGeneration beam_search(Decoder& decoder, const Tokenizer& tokenizer, std::string_view prompt,
                           const GenerateOptions& options, const BeamOptions& beam,
                           const std::function<bool()>& go_on = {});

}  // namespace transept
