// What every subcommand shares. A subcommand is one file: it declares its options, and a function that calls the
// libraries and prints.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/thread_pool.h"
#include "data/examples.h"
#include "spec/recompute.h"

namespace transept {

struct Globals {
  bool json = false;
  int threads = 0;  // 0: as many as the process may use
  uint64_t seed = 0;
  std::string command_line;  // as it was called

  ThreadPool pool() const { return ThreadPool(threads > 0 ? threads : available_processors()); }
};

// Adds the subcommand with --json, --threads and --seed; `run` gives the exit code.
struct Registry {
  CLI::App& app;
  Globals& globals;
  std::function<int()> selected;

  CLI::App* add(const std::string& name, const std::string& description, std::function<int()> run);
};

// For options whose default stands for "not given" and whose given values count something.
CLI::Validator at_least_one();

// --objective; CLI::ValidationError for an unknown name.
Objective parse_objective(const std::string& text);
// --recompute [none|selective|full]; without a value: full.
CLI::Option* add_recompute(CLI::App* sub, Recompute& recompute);
// What the data are made of; InputError where --lines does not fit.
Unit unit_of(const ExampleOptions& examples, bool lines);

// One JSON document on stdout, and nothing else there.
void print_json(const Json& document);
// One document on one line of stdout.
void print_json_line(const Json& document);

void register_bench(Registry& registry);
void register_chat(Registry& registry);
void register_convert(Registry& registry);
void register_detokenize(Registry& registry);
void register_embed(Registry& registry);
void register_eval(Registry& registry);
void register_generate(Registry& registry);
void register_logits(Registry& registry);
void register_machines(Registry& registry);
void register_plan(Registry& registry);
void register_presets(Registry& registry);
void register_scale(Registry& registry);
void register_spec(Registry& registry);
void register_study(Registry& registry);
void register_synth(Registry& registry);
void register_tokenize(Registry& registry);
void register_train(Registry& registry);

}  // namespace transept
