#include "study/study_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/problem.h"
#include "convert/kv_calibration.h"
#include "convert/model_folder.h"
#include "plan/plan.h"
#include "study/calibration_text.h"
#include "study/model_io.h"
#include "train/batch_call.h"
#include "train/checkpoint.h"

namespace transept {
namespace {

Json first_steps(const Json& recipe, size_t steps) {
  return Json(Json::array_t(recipe.begin(), recipe.begin() + static_cast<std::ptrdiff_t>(steps)));
}

// The spec with its rotary positions stretched from max_position_embeddings to `length` (spec/rope_scaling.h).
ArchSpec stretched(const ArchSpec& spec, const StretchStep& step) {
  const int64_t trained = spec.max_position_embeddings;
  const double factor = std::max(1.0, static_cast<double>(step.length) / static_cast<double>(trained));
  const auto scaling = [&]() -> RopeScaling {
    switch (step.rule) {
      case StretchRule::kLinear:
        return LinearScaling{.factor = factor};
      case StretchRule::kNtk:
        return NtkScaling{.factor = factor};
      case StretchRule::kDynamic:
        return DynamicScaling{.factor = 1, .original_max_position_embeddings = trained};
      case StretchRule::kYarn:
        return YarnScaling{.factor = factor, .original_max_position_embeddings = trained};
    }
    TRANSEPT_CHECK(false);
    return {};
  };
  ArchSpec result = spec;
  result.max_position_embeddings = std::max(trained, step.length);
  for (LayerSpec& layer : result.layers) {
    auto* rope = std::get_if<RopePosition>(&layer.position);
    if (!rope) throw InputError("stretch", "works on rotary positions, and a layer has others", "use position rope");
    rope->scaling = scaling();
  }
  return spec_from_json(spec_to_json(result), "stretch");
}

// The same weights under another spec, which declares the same parameters.
std::unique_ptr<Model> with_spec(Model& model, const ArchSpec& spec, bool trainable = false) {
  auto result = std::make_unique<Model>(spec, trainable);
  const std::span<const float> values = model.parameters().values();
  TRANSEPT_CHECK(result->parameters().count() == model.parameters().count());
  std::copy(values.begin(), values.end(), result->parameters().values().begin());
  return result;
}

}  // namespace

std::optional<TrainConfig> training_of(const StudyDefinition& definition, const ModelStep& step, int64_t seed) {
  std::optional<TrainConfig> config;
  if (const auto* train = std::get_if<TrainStep>(&step)) config = definition.trained_config(*train);
  if (const auto* more = std::get_if<UptrainStep>(&step)) {
    config = definition.training;
    config->schedule = usual_schedule(config->schedule.kind, more->lr, more->steps);
  }
  if (config) config->seed = static_cast<uint64_t>(seed);
  return config;
}

double flops_per_step(const ArchSpec& spec, const TrainConfig& config) {
  return static_cast<double>(make_plan(spec, {.context = config.context}).flops.train_per_token) *
         static_cast<double>(config.accumulation * config.batch * config.context);
}

StudyModels::StudyModels(const StudyDefinition& definition, const std::filesystem::path& folder, StudyStore& store,
                         ThreadPool& pool, const Corpus& corpus, const Tokenizer& tokenizer, Hooks hooks)
    : definition_(definition),
      folder_(folder),
      store_(store),
      pool_(pool),
      corpus_(corpus),
      tokenizer_(tokenizer),
      vocabulary_(vocabulary_of(tokenizer)),
      hooks_(std::move(hooks)) {}

std::string StudyModels::name_of(const Json& recipe, size_t steps, int64_t seed) {
  return fmt::format("{:016x}-seed{}", fnv1a(first_steps(recipe, steps).dump()), seed);
}

const Model& StudyModels::make(const DefinedCell& cell, int64_t seed) {
  const std::string name = name_of(cell.recipe, cell.steps.size(), seed);
  if (current_ && name == current_name_) return *current_;
  current_.reset();
  size_t done = cell.steps.size();
  while (done > 0 && !store_.has_model(name_of(cell.recipe, done, seed))) --done;
  std::unique_ptr<Model> model;
  if (done > 0) model = load_model(folder_ / name_of(cell.recipe, done, seed) / "checkpoint");
  for (size_t i = done; i < cell.steps.size(); ++i) {
    Making making{cell.recipe, i, seed, std::move(model)};
    model = std::visit([&](const auto& step) { return apply(step, std::move(making)); }, cell.steps[i]);
  }
  current_ = std::move(model);
  current_name_ = name;
  return *current_;
}

std::unique_ptr<Model> StudyModels::apply(const TrainStep& step, Making making) {
  const ArchSpec spec = definition_.trained_spec(step);
  making.model = std::make_unique<Model>(spec, true);
  making.model->parameters().initialize(spec, static_cast<uint64_t>(making.seed), pool_);
  return trained(step, std::move(making));
}

std::unique_ptr<Model> StudyModels::apply(const UptrainStep& step, Making making) {
  making.model = with_spec(*making.model, making.model->spec(), true);
  std::unique_ptr<Model> teacher;  // what the recipe began with
  if (step.teacher > 0) teacher = load_model(folder_ / name_of(making.recipe, 1, making.seed) / "checkpoint");
  return trained(step, std::move(making), {teacher.get(), step.teacher});
}

std::unique_ptr<Model> StudyModels::apply(const StretchStep& step, Making making) {
  return with_spec(*making.model, stretched(making.model->spec(), step));
}

std::unique_ptr<Model> StudyModels::apply(const KvHeadsStep& step, Making making) {
  KvConversion conversion{.heads = step.num_key_value_heads, .merge = step.method};
  KvCalibration calibration;
  if (step.method == KvMerge::kAligned) {
    conversion.calibration = &calibration;
    const TrainConfig& c = definition_.training;
    Arena arena;
    read_calibration_text(corpus_.train(), c.context, c.examples, vocabulary_, static_cast<uint64_t>(making.seed),
                          making.model->spec().hidden_size, [&](const Batch& batch) {
                            calibration.add(*making.model, {pool_, arena, nullptr}, call_of(batch));
                          });
  }
  return convert_kv_heads(*making.model, conversion);
}

std::unique_ptr<Model> StudyModels::trained(const ModelStep& step, Making making, const Teacher& teacher) {
  TrainConfig config = training_of(definition_, step, making.seed).value();
  const Json recipe = first_steps(making.recipe, making.step + 1);
  const std::string name = name_of(making.recipe, making.step + 1, making.seed);
  const std::filesystem::path folder = folder_ / name;
  make_writable_folder(folder);
  config.eval_every = 0;
  config.eval_tokens = 1;
  config.checkpoint_every = 0;
  const Json run{{"recipe", recipe}, {"config", config_to_json(config)}};
  std::optional<FoundCheckpoint> resume = find_checkpoint(folder, hooks_.note);
  if (resume && resume->state.run != run) resume.reset();
  LoopHooks hooks;
  hooks.io = folder_io(tokenizer_);
  hooks.teacher = teacher;
  hooks.note = hooks_.note;
  hooks.stop = hooks_.stop;
  const double step_flops = flops_per_step(making.model->spec(), config);
  hooks.progress = [&](const ProgressState& state) {
    if (hooks_.progress) hooks_.progress(state, static_cast<double>(state.step) * step_flops);
  };
  hooks.save_due = save_now_and_then();
  const auto begin = std::chrono::steady_clock::now();
  const LoopResult result =
      run_training(*making.model, pool_, corpus_, vocabulary_, config, folder, run, resume,
                   step_flops / static_cast<double>(config.accumulation * config.batch * config.context), hooks);
  if (result.interrupted) throw StudyStopped();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  store_.put_model(name, recipe, making.seed, seconds.count());
  if (hooks_.trained) hooks_.trained(step_flops * static_cast<double>(config.schedule.total_steps));
  return std::move(making.model);
}

}  // namespace transept
