// Text from a prompt: prefill, then token by token until a stop, the end token, or the limit. A decoder continues the
// prompt; an encoder-decoder answers it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/decoder.h"
#include "infer/sampler.h"
#include "text/tokenizer.h"

namespace transept {

// What a model reads before it writes.
struct Prompt {
  std::vector<int32_t> source;  // encoder-decoder: the text
  std::vector<int32_t> tokens;  // the text or, behind an encoder, the token that every answer begins with
  // How many of the tokens the decoder has been fed already, and nothing else: 0 makes it begin anew.
  int64_t kept = 0;
  int64_t length() const { return static_cast<int64_t>(source.empty() ? tokens.size() : source.size()); }
};

// InputError under the name `where` when there is nothing to read, or the text has more tokens than the context of the
// stack that reads it.
Prompt encode_prompt(const ArchSpec& spec, const Tokenizer& tokenizer, std::string_view text, int64_t context,
                     const std::string& where = "--prompt");

// Feeds the decoder what it does not hold of the prompt, having reset it unless it holds some; gives the logits that
// follow.
std::span<const float> read_prompt(Decoder& decoder, const Prompt& prompt);

// How many tokens, from id 0 on, can be chosen: the model's vocabulary may be padded beyond the tokenizer's.
size_t known_tokens(const ArchSpec& spec, const Tokenizer& tokenizer);

struct GenerateOptions {
  int64_t max_tokens = 200;
  SamplingOptions sampling;
  std::vector<std::string> stop = {};    // text ends before the first of these; it is not given out
  std::vector<int32_t> end_tokens = {};  // what ends a text beside the tokenizer's end token
  bool ignore_eos = false;
};

// Whether the token ends a text instead of belonging to it.
bool ends_text(const GenerateOptions& options, const Tokenizer& tokenizer, int32_t token);

// Tokens that an answer may have at the most once the prompt has been read: the last one needs no place in the context.
int64_t longest_answer(const Decoder& decoder, const GenerateOptions& options);

struct Generation {
  std::string text;             // without the prompt
  std::vector<int32_t> tokens;  // generated ones, without the end token
  std::string finish_reason;    // "stop" (a stop string or the end token) or "length"
  int64_t prompt_tokens = 0;
  double prefill_tokens_per_second = 0, decode_tokens_per_second = 0;
};

// `emit` receives the text piece by piece: whole characters, never a part of a stop string; it returns false to end
// early. The decoder is reset first. InputError as by encode_prompt.
Generation generate(Decoder& decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<bool(std::string_view)>& emit = {});
// The same from a prompt that is encoded already and fits into the context.
Generation generate(Decoder& decoder, const Tokenizer& tokenizer, const Prompt& prompt, const GenerateOptions& options,
                    const std::function<bool(std::string_view)>& emit = {});

}  // namespace transept
