// Text from a prompt: prefill, then token by token until a stop, the end token, or the limit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/decoder.h"
#include "infer/sampler.h"
#include "text/tokenizer.h"

namespace transept {

struct GenerateOptions {
  int64_t max_tokens = 200;
  SamplingOptions sampling;
  std::vector<std::string> stop;  // text ends before the first of these; it is not given out
  bool ignore_eos = false;
};

struct Generation {
  std::string text;             // without the prompt
  std::vector<int32_t> tokens;  // generated ones
  std::string finish_reason;    // "stop" (a stop string or the end token) or "length"
  int64_t prompt_tokens = 0;
  double prefill_tokens_per_second = 0, decode_tokens_per_second = 0;
};

// `emit` receives the text piece by piece: whole characters, never a part of a stop string; it returns false to end
// early. The decoder is reset first. InputError when the prompt is empty or does not leave room for a token.
Generation generate(Decoder& decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<bool(std::string_view)>& emit = {});

}  // namespace transept
