// transept generate: text from a prompt, streamed.
#include "infer/generate.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"

namespace transept {
namespace {
std::atomic<bool> interrupted{false};
void interrupt(int) { interrupted.store(true, std::memory_order_relaxed); }
}  // namespace

void register_generate(Registry& registry) {
  struct Options {
    std::string model, prompt, prompt_file;
    int64_t context = 0;
    GenerateOptions generate;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("generate", "continue a prompt, streamed to stdout", [o, &globals] {
    GenerateOptions options = o->generate;
    options.sampling.seed = globals.seed;
    Problems problems = options.sampling.check();
    if (options.max_tokens < 0)
      problems.push_back(
          {"--max-tokens", fmt::format("{} is out of range", options.max_tokens), "allowed is 0 or more"});
    if (!o->prompt.empty() && !o->prompt_file.empty())
      problems.push_back({"--prompt", "and --prompt-file cannot both be given", ""});
    throw_if_any(std::move(problems));
    const std::string prompt = o->prompt_file.empty() ? o->prompt : read_file(o->prompt_file, uint64_t{1} << 28);
    const LoadedModel loaded = load_model_argument(o->model);
    const Tokenizer& tokenizer = require_tokenizer(loaded, o->model);
    ThreadPool pool = globals.pool();
    // No more cache than the answer can need.
    const int64_t longest = o->context > 0 ? o->context : loaded.model->spec().max_position_embeddings;
    const int64_t wanted =
        static_cast<int64_t>(tokenizer.encode(prompt, true).size()) + std::min(options.max_tokens, longest) + 1;
    Decoder decoder(*loaded.model, pool, std::min(longest, wanted));
    std::signal(SIGINT, interrupt);
    // Written once it is known to fit.
    bool prompt_written = globals.json;
    const auto write_prompt = [&] {
      if (!std::exchange(prompt_written, true)) std::fwrite(prompt.data(), 1, prompt.size(), stdout);
    };
    const Generation g = generate(decoder, tokenizer, prompt, options, [&](std::string_view text) {
      write_prompt();
      if (!globals.json) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      }
      return !interrupted.load(std::memory_order_relaxed);
    });
    if (globals.json) {
      print_json({{"text", g.text},
                  {"tokens", g.tokens},
                  {"finish_reason", g.finish_reason},
                  {"prompt_tokens", g.prompt_tokens},
                  {"timings",
                   {{"prefill_tokens_per_second", g.prefill_tokens_per_second},
                    {"decode_tokens_per_second", g.decode_tokens_per_second}}}});
    } else {
      write_prompt();
      std::fputc('\n', stdout);
      std::fflush(stdout);
      fmt::print(stderr, "{} prompt tokens at {:.0f} tokens/s, {} new at {:.0f} tokens/s ({})\n", g.prompt_tokens,
                 g.prefill_tokens_per_second, g.tokens.size(), g.decode_tokens_per_second, g.finish_reason);
    }
    return interrupted.load() ? 130 : 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--prompt", o->prompt, "text to continue");
  sub->add_option("--prompt-file", o->prompt_file, "file with the text to continue");
  sub->add_option("--max-tokens", o->generate.max_tokens, "new tokens at the most")->capture_default_str();
  sub->add_option("--temperature", o->generate.sampling.temperature,
                  "divides the logits; 0: always the likeliest token")
      ->capture_default_str();
  sub->add_option("--top-k", o->generate.sampling.top_k, "draw from the K likeliest tokens; 0: from all")
      ->capture_default_str();
  sub->add_option("--top-p", o->generate.sampling.top_p, "draw from the fewest tokens that reach this probability")
      ->capture_default_str();
  sub->add_option("--min-p", o->generate.sampling.min_p,
                  "leave out tokens less likely than this share of the likeliest")
      ->capture_default_str();
  sub->add_option("--stop", o->generate.stop, "end before this text (may be given several times)")
      ->allow_extra_args(false);
  sub->add_flag("--ignore-eos", o->generate.ignore_eos, "do not stop at the end token");
  sub->add_option("--context", o->context, "longest prompt and answer together (default: the model's)")
      ->check(at_least_one());
}

}  // namespace transept
