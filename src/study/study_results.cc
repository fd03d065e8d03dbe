#include "study/study_results.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format_number.h"
#include "plan/plan.h"
#include "study/study_equality.h"
#include "train/evaluate.h"

namespace transept {
namespace {

// Dotted paths to the values that differ between two documents.
void add_differences(const Json& base, const Json& other, const std::string& path, Json& differs) {
  if (base.is_object() && other.is_object()) {
    for (const auto& [key, value] : other.items())
      add_differences(base.value(key, Json()), value, path.empty() ? key : path + "." + key, differs);
  } else if (base != other) {
    differs[path] = other;
  }
}

// A list of equal groups of layers differs by its groups' keys.
Json comparable(const ArchSpec& spec) {
  Json document = spec_to_json(spec);
  document.erase("name");
  return document;
}

Json models_of(const StudyDefinition& definition) {
  Json models = Json::array();
  Json first;
  for (const TrainedModel& m : trained_models(definition)) {
    const ArchSpec spec = definition.trained_spec(*m.step);
    const Plan plan = make_plan(spec, {.context = definition.trained_config(*m.step).context});
    const Json document = comparable(spec);
    if (first.is_null()) first = document;
    Json differs = Json::object();
    add_differences(first, document, "", differs);
    models.push_back({{"axes", m.axes},
                      {"differs", differs},
                      {"parameters", plan.parameters.total},
                      {"train_flops_per_token", plan.flops.train_per_token},
                      {"spec", spec_to_json(spec)}});
  }
  return models;
}

// Mean and sample standard deviation of every metric over the seeds.
Json summary_of(const StudyDefinition& definition, const Json& cells) {
  Json summary = Json::array();
  const size_t count = definition.cells.size();
  for (size_t c = 0; c < count; ++c) {
    std::map<std::string, std::vector<double>> values;
    for (size_t i = c; i < cells.size(); i += count) {
      for (const auto& [name, value] : cells[i].at("metrics").items()) {
        if (value.is_number()) values[name].push_back(value.get<double>());
      }
    }
    for (const auto& [name, of_seeds] : values) {
      const double n = static_cast<double>(of_seeds.size());
      double mean = 0, squares = 0;
      for (const double x : of_seeds) mean += x / n;
      for (const double x : of_seeds) squares += (x - mean) * (x - mean);
      summary.push_back({{"axes", definition.cells[c].axes},
                         {"metric", name},
                         {"mean", mean},
                         {"sd", n > 1 ? Json(std::sqrt(squares / (n - 1))) : Json()},
                         {"n", of_seeds.size()}});
    }
  }
  return summary;
}

Json protocol_of(const StudyDefinition& definition, const StudyRun& run) {
  const TrainConfig& t = definition.training;
  Json lines = Json::array();
  bool trains = false, scores = false, slides = false;
  for (const DefinedCell& cell : definition.cells) {
    trains = trains || !cell.steps.empty();
    for (const Measurement& m : cell.measurements) {
      const auto* p = std::get_if<PerplexityMeasurement>(&m);
      scores = scores || p;
      slides = slides || (p && p->protocol == EvalProtocol::kSliding);
    }
  }
  if (trains) {
    lines.push_back(fmt::format(
        "Each model is trained from random weights on {} tokens: {} steps of {} sequences of {} tokens, AdamW, {} "
        "schedule, highest rate {}.",
        format_count(static_cast<double>(t.schedule.total_steps * t.accumulation * t.batch * t.context)),
        format_count(static_cast<double>(t.schedule.total_steps)), t.accumulation * t.batch, t.context,
        schedule_name(t.schedule.kind), format_number(t.schedule.peak)));
    lines.push_back(
        fmt::format("The text is {}; its last {:.1f} % are held out.", run.data, 100 * definition.val_fraction));
  }
  if (scores) {
    lines.push_back(
        "Perplexity is of every held-out token after the first, each scored once, the same tokens at every context. "
        "Disjoint windows follow one another, so that the first token of each has nothing before it.");
  }
  if (slides) {
    lines.push_back(
        "Sliding windows overlap: each scores only its last tokens (a quarter of the context, unless the study says "
        "otherwise), which so have the rest of the context before them.");
  }
  lines.push_back(
      fmt::format("Every cell is run with {} seed{}, which draw{} weights and the order of the text; "
                  "figures are means, and ± is the standard deviation over seeds.",
                  definition.seeds, definition.seeds == 1 ? "" : "s", definition.seeds == 1 ? "s" : ""));
  return lines;
}

}  // namespace

Json study_results(const StudyDefinition& definition, const Json& equal, const StudyStore& store, const StudyRun& run) {
  Json cells = Json::array();
  for (int64_t seed = 0; seed < definition.seeds; ++seed) {
    for (const DefinedCell& cell : definition.cells) {
      Json row{{"axes", cell.axes}, {"seed", seed}};
      row.update(store.cell(cell, seed).value());
      cells.push_back(std::move(row));
    }
  }
  const Machine& m = run.machine;
  return {{"name", definition.name},
          {"title", definition.title},
          {"question", definition.question},
          {"size", EnumNames<StudySize>::kNames[static_cast<size_t>(definition.size)]},
          {"protocol", protocol_of(definition, run)},
          {"equal", equal},
          {"models", models_of(definition)},
          {"summary", summary_of(definition, cells)},
          {"cells", std::move(cells)},
          {"charts", definition.charts},
          {"figures", definition.figures},
          {"data", run.data},
          {"machine",
           {{"cpu", m.cpu},
            {"processors", m.processors},
            {"memory_bytes", m.memory_bytes},
            {"system", m.system},
            {"instruction_set", m.instruction_set},
            {"commit", m.commit}}},
          {"command", run.command}};
}

}  // namespace transept
