#include "plan/plan.h"

#include <algorithm>
#include <string>

#include "base/problem.h"
#include "plan/count.h"
#include "plan/stored_type.h"
#include "plan/training_types.h"
#include "plan/weight_format.h"

namespace transept {
namespace {

// Context and batch; far beyond any machine, and far from overflow by itself.
constexpr int64_t kLargestAsked = int64_t{1} << 40;

template <class T>
const T* find_named(const std::vector<T>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const T& t) { return t.name == name; });
  return found == all.end() ? nullptr : &*found;
}
std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}
template <class T>
std::string names_of(const std::vector<T>& all) {
  std::vector<std::string_view> names;
  for (const T& t : all) names.push_back(t.name);
  return joined(names);
}
std::vector<std::string_view> cache_types() {
  std::vector<std::string_view> names;
  for (const StoredType& type : stored_types()) {
    if (serves_a_cache(type)) names.push_back(type.name);
  }
  return names;
}

struct Types {
  const WeightFormat* weights;
  const StoredType* cache;
  const TrainingPrecision* precision;
  const OptimizerKind* optimizer;
};

Types check(const ArchSpec& spec, const Plan& plan) {
  Problems problems;
  const std::string range = "allowed: 1 to " + std::to_string(kLargestAsked);
  if (plan.context < 1 || plan.context > kLargestAsked)
    problems.push_back({"context", "got " + std::to_string(plan.context), range});
  if (plan.source_context < 0 || plan.source_context > kLargestAsked)
    problems.push_back({"source-context", "got " + std::to_string(plan.source_context), range});
  if (plan.batch < 1 || plan.batch > kLargestAsked)
    problems.push_back({"batch", "got " + std::to_string(plan.batch), range});
  if (std::holds_alternative<LearnedPosition>(spec.position) && plan.context > spec.max_position_embeddings) {
    problems.push_back({"context",
                        std::to_string(plan.context) + " tokens, and the table of positions ends at " +
                            std::to_string(spec.max_position_embeddings),
                        "ask for at most that many"});
  }
  const auto named = [&](const auto* found, const char* where, const std::string& got, const std::string& allowed) {
    if (!found) problems.push_back({where, "none is named \"" + got + "\"", "allowed: " + allowed});
    return found;
  };
  const StoredType* cache = find_stored_type(plan.kv_dtype);
  if (cache && !serves_a_cache(*cache)) cache = nullptr;
  const Types types = {
      named(WeightFormat::find(plan.dtype), "dtype", plan.dtype, joined(weight_format_names())),
      named(cache, "kv-dtype", plan.kv_dtype, joined(cache_types())),
      named(find_named(training_precisions(), plan.train_dtype), "train-dtype", plan.train_dtype,
            names_of(training_precisions())),
      named(find_named(optimizer_kinds(), plan.optimizer), "optimizer", plan.optimizer, names_of(optimizer_kinds()))};
  throw_if_any(std::move(problems));
  return types;
}

std::string cache_type_for(const std::string& dtype) {
  const WeightFormat* format = WeightFormat::find(dtype);
  return format && format->type->quantized() ? "f16" : dtype;
}

bool asked_for(const ParallelLayout& layout) {
  return layout.ranks() != 1 || layout.zero != 0 || layout.expert != 1 || layout.micro_batches != 1;
}

}  // namespace

Plan make_plan(const ArchSpec& spec, const PlanOptions& options) {
  Plan plan;
  plan.name = spec.name;
  plan.context = options.context == 0 ? spec.max_position_embeddings : options.context;
  if (spec.encoder_decoder()) plan.source_context = options.source_context == 0 ? plan.context : options.source_context;
  plan.batch = options.batch;
  plan.dtype = options.dtype;
  plan.kv_dtype = options.kv_dtype.empty() ? cache_type_for(options.dtype) : options.kv_dtype;
  plan.train_dtype = options.train_dtype;
  plan.optimizer = options.optimizer;
  plan.recompute = options.recompute;
  const Types types = check(spec, plan);

  const TrainingSetup training{plan.batch,     plan.context,     plan.source_context,
                               plan.recompute, *types.precision, *types.optimizer};
  plan.architecture = describe_architecture(spec);
  plan.parameters = count_parameters(spec);
  plan.kv_cache = count_cache(spec, plan.context, plan.source_context, plan.batch, *types.cache);
  plan.flops = count_flops(spec, plan.parameters, plan.context, plan.source_context, plan.recompute);
  plan.flops.train_per_step =
      plan.flops.train_per_token * static_cast<double>(plan.batch) * static_cast<double>(plan.context);
  plan.memory = count_memory(spec, plan.parameters, plan.kv_cache, training, *types.weights);
  if (asked_for(options.parallel)) {
    throw_if_any(check_layout(spec, options.parallel, training));
    plan.parallel = plan_parallel(spec, options.parallel, training);
  }
  Plan::Chinchilla& c = plan.chinchilla;
  c.tokens = (Count(c.tokens_per_parameter) * plan.parameters.total).value();
  c.train_flops = 6 * static_cast<double>(plan.parameters.total) * static_cast<double>(c.tokens);
  c.train_flops_counted = plan.flops.train_per_token * static_cast<double>(c.tokens);
  plan.serving = count_serving(spec, plan.parameters, plan.kv_cache, plan.memory,
                               {plan.batch, plan.context, plan.source_context, *types.weights, options.memory_bytes});
  return plan;
}

}  // namespace transept
