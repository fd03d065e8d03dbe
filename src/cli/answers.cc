#include "cli/answers.h"

#include <nlohmann/json.hpp>

namespace transept {

std::vector<CLI::Option*> add_sampling_options(CLI::App& sub, SamplingOptions& sampling) {
  return {
      sub.add_option("--temperature", sampling.temperature, "divides the logits; 0: always the likeliest token")
          ->capture_default_str(),
      sub.add_option("--top-k", sampling.top_k, "draw from the K likeliest tokens; 0: from all")->capture_default_str(),
      sub.add_option("--top-p", sampling.top_p, "draw from the fewest tokens that reach this probability")
          ->capture_default_str(),
      sub.add_option("--min-p", sampling.min_p, "leave out tokens less likely than this share of the likeliest")
          ->capture_default_str()};
}

Json answer_json(const Generation& answer) {
  return {{"tokens", answer.tokens},
          {"finish_reason", answer.finish_reason},
          {"prompt_tokens", answer.prompt_tokens},
          {"timings",
           {{"prefill_tokens_per_second", answer.prefill_tokens_per_second},
            {"decode_tokens_per_second", answer.decode_tokens_per_second}}}};
}

}  // namespace transept
