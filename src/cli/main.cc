// transept: one program, one subcommand a job. Exit codes: 0 done, 1 it failed, 2 the call or the input was wrong, 130
// stopped by a signal.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"

namespace transept {

CLI::App* Registry::add(const std::string& name, const std::string& description, std::function<int()> run) {
  CLI::App* sub = app.add_subcommand(name, description);
  sub->add_flag("--json", globals.json, "print one JSON document on stdout");
  sub->add_option("--threads", globals.threads, "threads to use (default: all that this process may use)")
      ->check(CLI::Range(1, 4096));
  sub->add_option("--seed", globals.seed, "seed of everything random")->capture_default_str();
  sub->callback([this, run = std::move(run)] { selected = run; });
  return sub;
}

Objective parse_objective(const std::string& text) {
  const std::optional<Objective> objective = objective_from_name(text);
  if (!objective)
    throw CLI::ValidationError("--objective",
                               "\"" + text + "\" is unknown; known are causal, mlm, span, denoise and seq2seq");
  return *objective;
}

CLI::Option* add_recompute(CLI::App* sub, Recompute& recompute) {
  return sub
      ->add_option_function<std::string>(
          "--recompute",
          [&recompute](const std::string& text) {
            const auto found = recompute_from_name(text);
            if (!found)
              throw CLI::ValidationError("--recompute",
                                         "\"" + text + "\" is unknown; known are none, selective and full");
            recompute = *found;
          },
          kRecomputeHelp)
      ->expected(0, 1)
      ->default_str("full");
}

Unit unit_of(const ExampleOptions& examples, bool lines) {
  const bool pairs = examples.objective == Objective::kSeq2seq;
  if (lines && pairs) throw InputError("--lines", "does not apply to pairs", "leave it out");
  if (lines && examples.separate_documents)
    throw InputError("--lines", "are separate documents already", "leave --separate-documents out");
  if (pairs) return Unit::kPairs;
  return lines ? Unit::kLines : Unit::kStream;
}

CLI::Validator at_least_one() {
  // The text is a whole number in its plain form by now: see check_whole.
  return {[](std::string& text) {
            return text == "0" || text.starts_with('-') ? text + " is out of range; allowed is 1 or more"
                                                        : std::string();
          },
          "1 or more"};
}

void print_json(const Json& document) {
  std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_json_line(const Json& document) {
  std::printf("%s\n", document.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

namespace {

void print_error(const Problem& problem) { std::fprintf(stderr, "error: %s\n", problem.to_string().c_str()); }

// How the program was called, quoted so that it can be pasted back.
std::string quoted(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    std::string word = i == 0 ? "transept" : argv[i];
    if (word.empty() || word.find_first_of(" \t\n'\"\\$`!*?[](){}<>|&;#~") != std::string::npos) {
      std::string safe = "'";
      for (const char c : word) safe += c == '\'' ? "'\\''" : std::string(1, c);
      word = safe + "'";
    }
    line += (i ? " " : "") + word;
  }
  return line;
}

// The option parser reads integers with strtoll: what is too large becomes the largest, 010 becomes 8, and -1 a huge
// seed. Here they are decimal numbers that fit, or refused.
template <class T>
std::string check_whole(std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return "\"" + text + "\" is not a whole number, or is too large";
  text = std::to_string(value);
  return {};
}

void check_whole_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("INT")) option->transform(CLI::Validator(check_whole<int64_t>, ""));
    if (type.starts_with("UINT")) option->transform(CLI::Validator(check_whole<uint64_t>, ""));
  }
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) check_whole_numbers(*sub);
}

int run(int argc, char** argv) {
  CLI::App app{"Transept: architecture workbench for transformer language models", "transept"};
  app.set_version_flag("--version", TRANSEPT_VERSION);
  app.failure_message(
      [](const CLI::App*, const CLI::Error& e) { return "error: " + std::string(e.what()) + "; see --help\n"; });
  Globals globals;
  globals.command_line = quoted(argc, argv);
  Registry registry{app, globals, {}};
  register_bench(registry);
  register_chat(registry);
  register_convert(registry);
  register_detokenize(registry);
  register_embed(registry);
  register_eval(registry);
  register_generate(registry);
  register_logits(registry);
  register_machines(registry);
  register_plan(registry);
  register_presets(registry);
  register_scale(registry);
  register_spec(registry);
  register_study(registry);
  register_synth(registry);
  register_tokenize(registry);
  register_train(registry);
  check_whole_numbers(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  // The parser's own demand for a subcommand would come before its complaint about a name that is none.
  if (!registry.selected) throw InputError("transept", "needs a subcommand", "see --help");
  return registry.selected();
}

}  // namespace
}  // namespace transept

int main(int argc, char** argv) {
  try {
    const int code = transept::run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw transept::EnvironmentError("stdout", "could not be written to");
    return code;
  } catch (const transept::Failure& e) {
    for (const transept::Problem& p : e.problems()) transept::print_error(p);
    return e.exit_code();
  } catch (const std::bad_alloc&) {
    transept::print_error({"memory", "there is not enough of it", "use a smaller model, batch or context"});
    return 1;
  } catch (const std::exception& e) {
    transept::print_error({"transept", e.what(), ""});
    return 1;
  }
}
