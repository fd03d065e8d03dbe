// What the commands that answer with text share: how tokens are drawn, and an answer's figures.
#pragma once

#include <vector>

#include "cli/command.h"
#include "infer/generate.h"

namespace transept {

// --temperature, --top-k, --top-p and --min-p.
std::vector<CLI::Option*> add_sampling_options(CLI::App& sub, SamplingOptions& sampling);

// tokens, finish_reason, prompt_tokens and timings.
Json answer_json(const Generation& answer);

}  // namespace transept
