// transept plan: counts and estimates of any model, without its weights.
#include "plan/plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/machine_options.h"
#include "cli/model_argument.h"

namespace transept {

void register_plan(Registry& registry) {
  struct Options {
    std::string model;
    PlanOptions plan;
    double memory_gib = 0;
    EconomicsOf economics;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub =
      registry.add("plan", "parameters, FLOPs, memory and cache of a model, from its spec alone", [o, &globals] {
        if (!(o->memory_gib >= 0 && o->memory_gib < 1e9))
          throw InputError("--memory", fmt::format("{} is out of range", o->memory_gib),
                           "give the machine's memory in GiB");
        PlanOptions options = o->plan;
        options.memory_bytes = static_cast<int64_t>(o->memory_gib * (int64_t{1} << 30));
        const ArchSpec spec = resolve_spec(o->model);
        const Plan plan = make_plan(spec, options);
        const std::optional<Economics> economics = o->economics(spec, options);
        if (globals.json) {
          Json json = to_json(plan);
          if (economics) json["economics"] = to_json(*economics);
          print_json(json);
        } else {
          fmt::print("{}{}", to_text(plan), economics ? "\n" + to_text(*economics) : "");
        }
        return 0;
      });
  sub->add_option("MODEL", o->model, "preset, spec file or model folder (config.json is enough)")->required();
  sub->add_option("--context", o->plan.context, "tokens of a sequence (default: the model's longest)")
      ->check(at_least_one());
  sub->add_option("--source-context", o->plan.source_context,
                  "encoder-decoder: tokens of the source (default: as --context)")
      ->check(at_least_one());
  sub->add_option("--batch", o->plan.batch, "sequences at a time")->capture_default_str()->check(at_least_one());
  sub->add_option("--dtype", o->plan.dtype, "type of the weights when the model is run")->capture_default_str();
  sub->add_option("--kv-dtype", o->plan.kv_dtype, "type of the cache (default: as --dtype)");
  sub->add_flag("--recompute", o->plan.recompute, "training computes activations again instead of keeping them");
  sub->add_option("--memory", o->memory_gib,
                  "memory of the machine that serves, in GiB: gives the largest batch that fits");
  o->economics = add_machine_options(*sub);
}

}  // namespace transept
