// transept generate: text from a prompt, streamed; or by beam search; or for every line of a file.
#include "infer/generate.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/problem.h"
#include "base/stop_request.h"
#include "cli/answers.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "infer/beam_search.h"

namespace transept {
namespace {

bool go_on() { return !stop_requested().load(std::memory_order_relaxed); }

constexpr uint64_t kLongestPromptFile = uint64_t{1} << 28;

struct PromptText {
  std::string text;
  std::string where;  // for errors
};

std::vector<PromptText> lines_of(const std::string& path) {
  const std::string file = read_file(path, kLongestPromptFile);
  std::vector<PromptText> lines;
  for (std::string_view rest = file; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({std::string(line), fmt::format("{}:{}", path, lines.size() + 1)});
  }
  if (lines.empty()) throw InputError(path, "is empty", "write a prompt on each line");
  return lines;
}

Json to_json(const Generation& g) {
  Json out{{"text", g.text}};
  out.update(answer_json(g));
  return out;
}

Json to_json(const BeamGeneration& g) {
  Json out = to_json(g.best);
  out["score"] = g.beams.front().score;
  for (const Hypothesis& h : g.beams) {
    out["beams"].push_back(
        {{"text", h.text}, {"tokens", h.tokens}, {"finish_reason", h.finish_reason}, {"score", h.score}});
  }
  return out;
}

// The answer as text: what it continues comes first, once it is known that the model accepts it.
class TextWriter {
 public:
  explicit TextWriter(std::string before) : before_(std::move(before)) {}
  bool write(std::string_view text) {
    std::fwrite(before_.data(), 1, before_.size(), stdout);
    before_.clear();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return go_on();
  }
  void finish(const Generation& g, const std::string& more) {
    write("\n");
    fmt::print(stderr, "{} prompt tokens at {:.0f} tokens/s, {} new at {:.0f} tokens/s ({}{})\n", g.prompt_tokens,
               g.prefill_tokens_per_second, g.tokens.size(), g.decode_tokens_per_second, g.finish_reason, more);
  }

 private:
  std::string before_;
};

}  // namespace

void register_generate(Registry& registry) {
  struct Options {
    std::string model, prompt, prompt_file, prompts;
    int64_t context = 0;
    GenerateOptions generate;
    BeamOptions beam{.beams = 1};
    std::vector<CLI::Option*> sampling;  // what only sampling looks at
    CLI::Option* length_penalty = nullptr;

    Problems check() const {
      Problems problems = generate.sampling.check();
      for (Problem& p : beam.check()) problems.push_back(std::move(p));
      if (generate.max_tokens < 0)
        problems.push_back(
            {"--max-tokens", fmt::format("{} is out of range", generate.max_tokens), "allowed is 0 or more"});
      if (!prompt.empty() + !prompt_file.empty() + !prompts.empty() > 1)
        problems.push_back({"--prompt", "--prompt-file and --prompts exclude each other", "give one"});
      for (const CLI::Option* option : sampling) {
        if (beam.beams > 1 && option->count() > 0)
          problems.push_back(
              {option->get_name(), "does not apply to --beams above 1, which draws nothing", "leave it out"});
      }
      if (beam.beams == 1 && length_penalty->count() > 0)
        problems.push_back({"--length-penalty", "applies to --beams above 1 only", "leave it out"});
      return problems;
    }
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("generate", "continue a prompt, or answer it, streamed to stdout", [o, &globals] {
    throw_if_any(o->check());
    GenerateOptions options = o->generate;
    options.sampling.seed = globals.seed;
    std::vector<PromptText> prompts;
    if (!o->prompts.empty()) {
      prompts = lines_of(o->prompts);
    } else {
      prompts.push_back({o->prompt_file.empty() ? o->prompt : read_file(o->prompt_file, kLongestPromptFile),
                         o->prompt_file.empty() ? "--prompt" : "--prompt-file"});
    }
    const LoadedModel loaded = load_model_argument(o->model);
    const Tokenizer& tokenizer = require_tokenizer(loaded, o->model);
    const ArchSpec& spec = loaded.model->spec();
    options.end_tokens = loaded.end_tokens;
    // No more cache than the answers can need.
    const int64_t longest = o->context > 0 ? o->context : spec.max_position_embeddings;
    int64_t wanted = 1, source = 0;
    for (const PromptText& p : prompts) {
      const Prompt prompt = encode_prompt(spec, tokenizer, p.text, longest, p.where);
      wanted = std::max(wanted, static_cast<int64_t>(prompt.tokens.size()));
      source = std::max(source, static_cast<int64_t>(prompt.source.size()));
    }
    wanted += std::min(options.max_tokens, longest);
    ThreadPool pool = globals.pool();
    Decoder decoder(*loaded.model, pool, std::min(longest, wanted), source, o->beam.beams);
    catch_stop_signals();
    for (const PromptText& p : prompts) {
      const bool as_json = globals.json || !o->prompts.empty();
      // A source is answered, not continued.
      TextWriter writer(spec.encoder_decoder() ? "" : p.text);
      Json document;
      if (o->beam.beams > 1) {
        const BeamGeneration g = beam_search(decoder, tokenizer, p.text, options, o->beam, go_on);
        if (as_json) {
          document = to_json(g);
        } else {
          writer.write(g.best.text);
          writer.finish(g.best, fmt::format(", score {:.4f}", g.beams.front().score));
        }
      } else {
        const Generation g = generate(decoder, tokenizer, p.text, options,
                                      [&](std::string_view text) { return as_json ? go_on() : writer.write(text); });
        if (as_json) {
          document = to_json(g);
        } else {
          writer.finish(g, "");
        }
      }
      if (as_json) document["timings"]["load_seconds"] = loaded.load_seconds;
      if (!o->prompts.empty()) {
        document["prompt"] = p.text;
        print_json_line(document);
      } else if (as_json) {
        print_json(document);
      }
      if (!go_on()) return 130;
      ++options.sampling.seed;
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--prompt", o->prompt, "text to continue; for an encoder-decoder, to answer");
  sub->add_option("--prompt-file", o->prompt_file, "file with the text");
  sub->add_option(
      "--prompts", o->prompts,
      "file with a text a line: gives a line of JSON for each, as --json would with the next seed each time");
  sub->add_option("--max-tokens", o->generate.max_tokens, "new tokens at the most")->capture_default_str();
  o->sampling = add_sampling_options(*sub, o->generate.sampling);
  sub->add_option("--beams", o->beam.beams, "beam search with this many hypotheses, instead of drawing; 1: none")
      ->capture_default_str();
  o->length_penalty =
      sub->add_option("--length-penalty", o->beam.length_penalty,
                      "A: hypotheses are ranked by log-probability / ((5 + length) / 6)^A; 0: whatever their length")
          ->capture_default_str();
  sub->add_option("--stop", o->generate.stop, "end before this text (may be given several times)")
      ->allow_extra_args(false);
  sub->add_flag("--ignore-eos", o->generate.ignore_eos, "do not stop at the end token");
  sub->add_option("--context", o->context, "longest prompt and answer together (default: the model's)")
      ->check(at_least_one());
}

}  // namespace transept
