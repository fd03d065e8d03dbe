// transept plan: counts and estimates of any model, or of several side by side, without weights.
#include "plan/plan.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format_number.h"
#include "base/problem.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/machine_options.h"
#include "cli/model_argument.h"
#include "kernels/isa.h"
#include "plan/budget.h"
#include "plan/comparison.h"
#include "plan/published.h"
#include "plan/variants.h"
#include "spec/presets.h"
#include "study/plan_report.h"

namespace transept {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> compare, budget;
  bool variants = false;
  int64_t published = 0;
  double memory_gib = 0;
  std::string out;
  PlanOptions plan;
  EconomicsOf economics;
};

enum class Out { kNothing, kPage, kSpec };

Out out_kind(const Options& o) {
  if (o.out.empty()) return Out::kNothing;
  const std::string extension = std::filesystem::path(o.out).extension();
  if (extension == ".html") return Out::kPage;
  if (extension == ".json" && !o.budget.empty()) return Out::kSpec;
  throw InputError("--out", "\"" + o.out + "\" says not what to write",
                   "name a page, FILE.html, or with --budget a spec, FILE.json");
}

void write_page(const Options& o, const Globals& globals, const std::vector<Plan>& models, const std::string& title) {
  ReportPage page = models.size() == 1 ? plan_page(models.front()) : comparison_page(models, title);
  page.command = globals.command_line;
  page.machine = this_machine(instruction_set_name(), build_commit());
  write_report(o.out, page);
  fmt::print(stderr, "wrote {}\n", o.out);
}

Plan planned(const ArchSpec& spec, PlanOptions options, bool shorten) {
  // Models side by side need not all reach the asked context: a table of positions ends where it ends.
  if (shorten && std::holds_alternative<LearnedPosition>(spec.position))
    options.context = std::min(options.context, spec.max_position_embeddings);
  return make_plan(spec, options);
}

int show_side_by_side(const Options& o, const Globals& globals, const std::vector<Plan>& models,
                      const std::string& title) {
  if (out_kind(o) == Out::kPage) write_page(o, globals, models, title);
  if (globals.json) {
    Json all = Json::array();
    for (const Plan& m : models) all.push_back(to_json(m));
    print_json({{"models", all}});
  } else {
    fmt::print("{}", comparison_text(models));
  }
  return 0;
}

// Names with * or ? stand for all presets that they fit; "all" for every one.
std::vector<std::string> expanded(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  Problems problems;
  for (const std::string& name : names) {
    if (name != "all" && name.find_first_of("*?[") == std::string::npos) {
      all.push_back(name);
      continue;
    }
    const size_t before = all.size();
    for (const std::string& preset : preset_names()) {
      if (name == "all" || fnmatch(name.c_str(), preset.c_str(), 0) == 0) all.push_back(preset);
    }
    if (all.size() == before)
      problems.push_back({name, "fits no preset", "transept presets lists them; quote the pattern from the shell"});
  }
  throw_if_any(std::move(problems));
  return all;
}

int compare(const Options& o, const Globals& globals) {
  std::vector<Plan> models;
  Problems problems;
  for (const std::string& name : expanded(o.compare)) {
    try {
      models.push_back(planned(resolve_spec(name), o.plan, true));
      models.back().name = name;
    } catch (const InputError& error) {
      for (const Problem& p : error.problems()) problems.push_back({name + ": " + p.where, p.what, p.mend});
    }
  }
  throw_if_any(std::move(problems));
  return show_side_by_side(o, globals, models, fmt::format("{} models side by side", models.size()));
}

int show_variants(const Options& o, const Globals& globals) {
  const ArchSpec spec = resolve_spec(o.model);
  std::vector<Plan> models = {planned(spec, o.plan, false)};
  for (const Variant& v : attention_variants(spec)) models.push_back(planned(v.spec, o.plan, false));
  return show_side_by_side(o, globals, models, spec.name + " with other attention");
}

int show_published(const Options& o, const Globals& globals) {
  const PublishedCount p = explain_count(resolve_spec(o.model), o.published);
  const auto number = [](int64_t n) { return format_count(static_cast<double>(n)); };
  if (globals.json) {
    Json parts = Json::array();
    for (const CountDifference& d : p.parts) parts.push_back({{"what", d.what}, {"elements", d.elements}});
    print_json({{"published", p.published},
                {"counted", p.counted},
                {"difference", p.published - p.counted},
                {"explained", p.explained},
                {"parts", parts}});
    return 0;
  }
  fmt::print("{:>22}  published\n{:>22}  counted\n", number(p.published), number(p.counted));
  for (const CountDifference& d : p.parts)
    fmt::print("{:>22}  {}\n", (d.elements > 0 ? "+" : "") + number(d.elements), d.what);
  if (!p.explained)
    fmt::print("{:>22}  not explained by buffers, copies, scales or parts left out\n", number(p.published - p.counted));
  return 0;
}

int search(const Options& o, const Globals& globals) {
  const Out out = out_kind(o);
  const std::vector<Candidate> found = search_budget(resolve_spec(o.model), parse_budget(o.budget), o.plan);
  std::vector<Plan> models;
  for (const Candidate& c : found) models.push_back(c.plan);
  if (out == Out::kPage) write_page(o, globals, models, fmt::format("Shapes of {} within a budget", o.model));
  if (out == Out::kSpec) {
    write_file_atomic(o.out, spec_to_json(found.front().spec).dump(2) + "\n");
    fmt::print(stderr, "wrote {}, the first of these\n", o.out);
  }
  if (globals.json) {
    Json all = Json::array();
    for (const Candidate& c : found) {
      all.push_back(to_json(c.plan));
      all.back().update({{"used", c.used}, {"spec", spec_to_json(c.spec)}});
    }
    print_json({{"models", all}});
  } else {
    fmt::print("{}", comparison_text(models));
  }
  return 0;
}

int show_one(const Options& o, const Globals& globals) {
  const ArchSpec spec = resolve_spec(o.model);
  const std::vector<Plan> one = {make_plan(spec, o.plan)};
  const std::optional<Economics> economics = o.economics(spec, o.plan);
  if (out_kind(o) == Out::kPage) write_page(o, globals, one, "");
  if (globals.json) {
    Json json = to_json(one.front());
    if (economics) json["economics"] = to_json(*economics);
    print_json(json);
  } else {
    fmt::print("{}{}", to_text(one.front()), economics ? "\n" + to_text(*economics) : "");
  }
  return 0;
}

int run(Options o, const Globals& globals) {
  if (!(o.memory_gib >= 0 && o.memory_gib < 1e9))
    throw InputError("--memory", fmt::format("{} is out of range", o.memory_gib), "give the machine's memory in GiB");
  o.plan.memory_bytes = static_cast<int64_t>(o.memory_gib * (int64_t{1} << 30));
  if (o.model.empty() == o.compare.empty()) {
    throw InputError("MODEL", o.model.empty() ? "is missing" : "stands beside --compare",
                     "name one model, or several behind --compare");
  }
  const int tasks = o.variants + (o.published != 0) + !o.budget.empty() + !o.compare.empty();
  if (tasks > 1)
    throw InputError("plan", "--compare, --variants, --published and --budget are different questions",
                     "ask one of them");
  if (!o.compare.empty()) return compare(o, globals);
  if (o.variants) return show_variants(o, globals);
  if (o.published != 0) return show_published(o, globals);
  return o.budget.empty() ? show_one(o, globals) : search(o, globals);
}

void add_layout(CLI::App* sub, ParallelLayout& layout) {
  const auto ranks = [&](const char* flag, int64_t& value, const char* help) {
    sub->add_option(flag, value, help)->capture_default_str()->group("Training on many ranks");
  };
  ranks("--data-parallel", layout.data, "replicas, each with its share of the batch");
  ranks("--zero", layout.zero, "1: the optimizer, 2: gradients too, 3: weights too are dealt out to the replicas");
  ranks("--tensor-parallel", layout.tensor, "ranks that share each matrix, and activations with it");
  ranks("--pipeline-parallel", layout.pipeline, "stages of neighbouring layers");
  ranks("--expert-parallel", layout.expert, "ranks, of the replicas', that share the experts");
  ranks("--context-parallel", layout.context, "ranks that share each sequence");
  ranks("--micro-batches", layout.micro_batches, "that a replica's share of the batch comes in");
}

}  // namespace

void register_plan(Registry& registry) {
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("plan", "parameters, FLOPs, memory and cache of models, from their specs alone",
                               [o, &globals] { return run(*o, globals); });
  sub->add_option("MODEL", o->model, "preset, spec file or model folder (config.json is enough)");
  sub->add_option("--compare", o->compare, "models side by side; 'llama-*' stands for presets, all for every one")
      ->type_name("MODEL...");
  sub->add_flag("--variants", o->variants,
                "the model beside itself with multi-head, grouped, multi-query, latent and windowed attention");
  sub->add_option(
         "--budget", o->budget,
         "shapes of the model's form that fill parameters=7B, active=3B, flops=1e21 (of a run over 20 tokens a "
         "parameter), memory=24GiB or training-memory=80GiB; several: within all of them")
      ->type_name("KIND=AMOUNT...");
  sub->add_option("--published", o->published, "explains a count of parameters that somebody published")
      ->check(at_least_one());
  sub->add_option("--out", o->out, "writes a page, FILE.html; with --budget also the first shape's spec, FILE.json");
  sub->add_option("--context", o->plan.context, "tokens of a sequence (default: the model's longest)")
      ->check(at_least_one());
  sub->add_option("--source-context", o->plan.source_context,
                  "encoder-decoder: tokens of the source (default: as --context)")
      ->check(at_least_one());
  sub->add_option("--batch", o->plan.batch, "sequences at a time")->capture_default_str()->check(at_least_one());
  sub->add_option("--dtype", o->plan.dtype,
                  "type of the weights when the model is run: f32, bf16, f16, f8, or one of GGUF's, q8_0 to q2_k and "
                  "the mixtures q5_k_m, q4_k_m")
      ->capture_default_str();
  sub->add_option("--kv-dtype", o->plan.kv_dtype,
                  "type of the cache (default: as --dtype; f16 beside quantized weights)");
  sub->add_option("--train-dtype", o->plan.train_dtype,
                  "type of weights, gradients and activations when it is trained: f32, or bf16 with master weights")
      ->capture_default_str();
  sub->add_option("--optimizer", o->plan.optimizer, "adamw or adamw_8bit")->capture_default_str();
  add_recompute(sub, o->plan.recompute);
  sub->add_option("--memory", o->memory_gib,
                  "memory of the machine that serves, in GiB: gives the largest batch that fits");
  o->economics = add_machine_options(*sub);
  add_layout(sub, o->plan.parallel);
}

}  // namespace transept
