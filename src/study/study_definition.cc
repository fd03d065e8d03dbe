#include "study/study_definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/problem.h"
#include "data/objective.h"
#include "spec/extends.h"
#include "spec/group_json.h"
#include "text/tokenizer.h"

namespace transept {
namespace {

constexpr int64_t kMostSeeds = 1000;
constexpr size_t kMostCells = 10000;

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

void refuse_unknown_keys(const Json& object, const std::vector<std::string>& known, const std::string& path,
                         Problems& problems) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest_name(key, known);
    problems.push_back({path + "." + printable(key), "is no known key",
                        near.empty() ? "known here: " + join(known) : "did you mean " + in_quotes(near) + "?"});
  }
}

// Members of an object, with their types checked; what is wrong is reported and left at its default.
class Members {
 public:
  Members(const Json& object, std::string path, Problems& problems)
      : object_(object), path_(std::move(path)), problems_(problems) {
    if (!object.is_object()) problems_.push_back({path_, "got " + describe_json(object), "allowed: an object"});
  }

  std::string text(const char* key, bool required = false) {
    const Json* value = find(key, required, "a string");
    if (!value) return {};
    if (value->is_string()) return value->get<std::string>();
    return wrong(key, *value, "a string"), std::string();
  }
  int64_t whole(const char* key, int64_t otherwise, int64_t low, int64_t high) {
    const std::string allowed = fmt::format("a whole number from {} to {}", low, high);
    const Json* value = find(key, false, allowed);
    if (!value) return otherwise;
    const std::optional<int64_t> number = whole_number(*value);
    if (number && *number >= low && *number <= high) return *number;
    return wrong(key, *value, allowed), otherwise;
  }
  double share(const char* key, double otherwise) {
    const std::string allowed = "a number above 0 and below 1";
    const Json* value = find(key, false, allowed);
    if (!value) return otherwise;
    if (value->is_number() && value->get<double>() > 0 && value->get<double>() < 1) return value->get<double>();
    return wrong(key, *value, allowed), otherwise;
  }
  Json object(const char* key, bool required = false) { return typed(key, required, Json::value_t::object); }
  Json list(const char* key, bool required = false) { return typed(key, required, Json::value_t::array); }
  void only(const std::vector<std::string>& known) {
    if (object_.is_object()) refuse_unknown_keys(object_, known, path_, problems_);
  }

 private:
  const Json* find(const char* key, bool required, const std::string& allowed) {
    if (object_.is_object() && object_.contains(key)) return &object_[key];
    if (required) problems_.push_back({path_ + "." + key, "is missing", "allowed: " + allowed});
    return nullptr;
  }
  void wrong(const char* key, const Json& value, const std::string& allowed) {
    problems_.push_back({path_ + "." + key, "got " + describe_json(value), "allowed: " + allowed});
  }
  Json typed(const char* key, bool required, Json::value_t type) {
    const std::string allowed = type == Json::value_t::object ? "an object" : "a list";
    const Json* value = find(key, required, allowed);
    if (value && value->type() == type) return *value;
    if (value) wrong(key, *value, allowed);
    return Json(type);
  }

  const Json& object_;
  std::string path_;
  Problems& problems_;
};

bool is_axis_value(const Json& value) { return value.is_string() || value.is_number(); }

// The document with every string that begins with "$" replaced; `replace` is given it and its path.
template <class F>
Json replaced(const Json& document, const std::string& path, const F& replace) {
  if (document.is_string()) {
    const std::string& text = document.get_ref<const std::string&>();
    return text.starts_with("$") ? replace(text, path) : document;
  }
  if (!document.is_structured()) return document;
  Json result = document;
  if (document.is_array()) {
    for (size_t i = 0; i < document.size(); ++i)
      result[i] = replaced(document[i], fmt::format("{}[{}]", path, i), replace);
  } else {
    for (const auto& [key, value] : document.items())
      result[key] = replaced(value, path + "." + printable(key), replace);
  }
  return result;
}

// "$axis" by the cell's value of the axis.
Json with_cell_values(const Json& document, const Json& axes, const std::string& where, Problems& problems) {
  return replaced(document, where, [&](const std::string& text, const std::string& path) -> Json {
    const std::string name = text.substr(1);
    if (axes.contains(name)) return axes[name];
    problems.push_back({path, in_quotes(text) + " names no axis of the cell", "its axes: " + join(keys_of(axes))});
    return text;
  });
}

// "$axis[i]" by that value of the axis, counted from 0, or from the end where i is negative: so what is written once
// serves a study's quick form, too.
Json with_axis_values(const Json& document, const Json& axes, const std::string& where, Problems& problems) {
  return replaced(document, where, [&](const std::string& text, const std::string& path) -> Json {
    const size_t bracket = text.find('[');
    if (bracket == std::string::npos) return text;
    const std::string name = text.substr(1, bracket - 1);
    int64_t index = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + bracket + 1, end, index);
    const int64_t count = axes.contains(name) ? static_cast<int64_t>(axes[name].size()) : 0;
    if (index < 0) index += count;
    if (error == std::errc() && at + 1 == end && *at == ']' && index >= 0 && index < count)
      return axes[name][static_cast<size_t>(index)];
    problems.push_back({path, in_quotes(text) + " is no value of an axis", "write it as $context[0] or $context[-1]"});
    return text;
  });
}

// TrainConfig::fields as a document: options by their flags' names.
void read_training(const Json& given, const std::string& path, TrainConfig& config, Problems& problems) {
  Json merged = config_to_json(config);
  refuse_unknown_keys(given, keys_of(merged), path, problems);
  for (const auto& [key, value] : given.items()) {
    const auto known = merged.find(key);
    if (known == merged.end()) continue;
    Json tried = merged;
    tried[key] = value;
    bool fits = known->is_number_float() ? value.is_number()
                : known->is_number()     ? whole_number(value).has_value()
                                         : known->type() == value.type();
    try {
      if (fits) config_from_json(tried, path);
    } catch (const InputError&) {
      fits = false;
    }
    if (fits) {
      merged = std::move(tried);
    } else {
      problems.push_back(
          {path + "." + key, "got " + describe_json(value), "allowed: what `train --" + key + "` takes"});
    }
  }
  config = config_from_json(merged, path);
  const Schedule usual = usual_schedule(config.schedule.kind, config.schedule.peak, config.schedule.total_steps);
  if (!given.contains("warmup")) config.schedule.warmup_steps = usual.warmup_steps;
  if (!given.contains("min-lr")) config.schedule.minimum = usual.minimum;
  if (!given.contains("decay-steps")) config.schedule.decay_steps = usual.decay_steps;
  for (Problem p : config.check()) {
    p.where = path + "." + p.where.substr(p.where.find_first_not_of('-'));
    problems.push_back(std::move(p));
  }
}

// One of a list of kinds (model steps, measurements), by its group reader.
template <class Any>
std::optional<Any> read_kind(const Json& document, const std::string& where, const std::string& path,
                             Problems& problems) {
  if (!document.is_object()) {
    problems.push_back({where + ": " + path, "got " + describe_json(document), "allowed: an object with a \"kind\""});
    return std::nullopt;
  }
  Findings findings(where);
  if (!document.contains("kind")) {
    std::vector<std::string> kinds(NestedGroup<Any>::KindList::kNames.begin(),
                                   NestedGroup<Any>::KindList::kNames.end());
    problems.push_back({where + ": " + path + ".kind", "is missing", "allowed: " + join(kinds)});
    return std::nullopt;
  }
  const auto read = read_group<NestedGroup<Any>>(Source{document, path}, true, findings);
  try {
    findings.throw_if_any();
  } catch (const InputError& e) {
    problems.insert(problems.end(), e.problems().begin(), e.problems().end());
    return std::nullopt;
  }
  return read.group.spec;
}

class DefinitionReader {
 public:
  DefinitionReader(StudySize size, std::string where) : size_(size), where_(std::move(where)) {}

  StudyDefinition read(const Json& written) {
    StudyDefinition& d = definition_;
    d.size = size_;
    Json document = written;
    if (!written.is_object()) throw InputError(where_, "got " + describe_json(written), "allowed: an object");
    if (size_ == StudySize::kQuick) {
      if (!written.contains("quick"))
        throw InputError("--quick", where_ + " has no quick form", "leave it out, or add \"quick\" to the study");
      document.merge_patch(written["quick"]);
    }
    document.erase("quick");
    Members members(document, where_, problems_);
    members.only({"name", "title", "question", "base", "tokenizer", "val_fraction", "training", "seeds", "axes",
                  "equal", "cells", "charts", "figures"});
    d.name = members.text("name", true);
    d.title = members.text("title");
    if (d.title.empty()) d.title = d.name;
    d.question = members.text("question");
    d.tokenizer = members.text("tokenizer");
    d.seeds = members.whole("seeds", 1, 1, kMostSeeds);
    d.val_fraction = members.share("val_fraction", d.val_fraction);
    d.base = members.object("base");
    read_training(members.object("training"), where_ + ": training", d.training, problems_);
    read_equal(members.object("equal"));
    read_axes(members.object("axes"));
    d.charts = with_axis_values(members.list("charts"), axes_, at("charts"), problems_);
    d.figures = with_axis_values(members.list("figures"), axes_, at("figures"), problems_);
    const Json cells = with_axis_values(members.list("cells", true), axes_, at("cells"), problems_);
    for (size_t i = 0; i < cells.size(); ++i) read_template(cells[i], fmt::format("cells[{}]", i));
    if (problems_.empty() && d.cells.empty())
      problems_.push_back({where_ + ": cells", "is empty", "a study measures one cell at least"});
    if (problems_.empty()) check_specs();
    throw_if_any(std::move(problems_));
    return std::move(definition_);
  }

 private:
  std::string at(const std::string& path) const { return where_ + ": " + path; }

  void read_equal(const Json& equal) {
    const std::vector<std::string> names(EnumNames<Equal>::kNames.begin(), EnumNames<Equal>::kNames.end());
    refuse_unknown_keys(equal, names, at("equal"), problems_);
    for (size_t i = 0; i < names.size(); ++i) {
      if (!equal.contains(names[i])) continue;
      const Json& value = equal[names[i]];
      const bool a_share = i <= 1;  // parameters and FLOPs may differ by a little; the others are equal or not
      if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > (a_share ? 1 : 0)) {
        problems_.push_back({at("equal." + names[i]), "got " + describe_json(value),
                             a_share ? "allowed: the largest relative difference, from 0 to 1"
                                     : "allowed: 0, since it is equal or not"});
      } else {
        definition_.equal[static_cast<Equal>(i)] = value.get<double>();
      }
    }
  }

  void read_axes(const Json& axes) {
    for (const auto& [name, values] : axes.items()) {
      const bool fits =
          values.is_array() && !values.empty() && std::all_of(values.begin(), values.end(), is_axis_value);
      if (fits) {
        axes_[name] = values;
      } else {
        problems_.push_back({at("axes." + printable(name)), "got " + describe_json(values),
                             "allowed: a list of strings or numbers, one at least"});
      }
    }
  }

  // A template of cells: one for each combination of the axes that it goes through.
  void read_template(const Json& cell, const std::string& path) {
    Members members(cell, at(path), problems_);
    if (!cell.is_object()) return;
    members.only({"for", "where", "axes", "model", "measure"});
    const Json fixed = members.object("axes"), where = members.object("where"), model = members.list("model"),
               measure = members.list("measure", true);
    for (const auto& [name, value] : fixed.items()) {
      if (!is_axis_value(value))
        problems_.push_back(
            {at(path + ".axes." + printable(name)), "got " + describe_json(value), "allowed: a string or a number"});
    }
    std::vector<Json> combinations{fixed};
    for (const Json& name : members.list("for")) {
      if (!name.is_string() || !axes_.contains(name.get<std::string>())) {
        problems_.push_back(
            {at(path + ".for"), "got " + describe_json(name), "allowed: names of axes, " + join(keys_of(axes_))});
        return;
      }
      const std::string axis = name.get<std::string>();
      std::vector<Json> more;
      for (const Json& combination : combinations) {
        for (const Json& value : axes_[axis]) {
          if (where.contains(axis) && !among(value, where[axis])) continue;
          more.push_back(combination);
          more.back()[axis] = value;
        }
      }
      combinations = std::move(more);
      if (combinations.size() + definition_.cells.size() > kMostCells)
        throw InputError(at(path), fmt::format("makes more than {} cells", kMostCells), "use shorter axes");
    }
    for (const Json& axes : combinations) add_cell(axes, model, measure, path);
  }

  static bool among(const Json& value, const Json& allowed) {
    return allowed.is_array() ? std::find(allowed.begin(), allowed.end(), value) != allowed.end() : value == allowed;
  }

  // The study's axes first, in its order.
  Json in_order(const Json& axes) const {
    Json ordered = Json::object();
    for (const auto& [name, values] : axes_.items()) {
      if (axes.contains(name)) ordered[name] = axes[name];
    }
    ordered.update(axes);
    return ordered;
  }

  void add_cell(const Json& axes, const Json& model, const Json& measure, const std::string& path) {
    DefinedCell cell{in_order(axes),
                     with_cell_values(model, axes, at(path + ".model"), problems_),
                     with_cell_values(measure, axes, at(path + ".measure"), problems_),
                     {},
                     {}};
    for (size_t i = 0; i < cell.recipe.size(); ++i) {
      if (auto step = read_step(cell.recipe[i], fmt::format("{}.model[{}]", path, i), i == 0))
        cell.steps.push_back(std::move(*step));
    }
    for (size_t i = 0; i < cell.measures.size(); ++i) {
      const std::string place = fmt::format("{}.measure[{}]", path, i);
      const auto measurement = read_kind<Measurement>(cell.measures[i], where_, place, problems_);
      if (!measurement) continue;
      if (needs_model(*measurement) && cell.recipe.empty())
        problems_.push_back({at(place), "measures a model, and the cell has none", "give the cell a \"model\""});
      cell.measurements.push_back(*measurement);
    }
    if (!cells_.insert(cell.axes.dump()).second) {
      problems_.push_back({at(path), "has the axes of another cell: " + axes.dump(), "tell them apart by an axis"});
    }
    definition_.cells.push_back(std::move(cell));
  }

  std::optional<ModelStep> read_step(const Json& document, const std::string& path, bool first) {
    // What a step lays over the study's own documents has no fixed keys, so it is read apart.
    Json plain = document;
    TrainStep train;
    const bool trains = document.is_object() && document.value("kind", Json()) == TrainStep::kName;
    if (trains) {
      Members members(document, at(path), problems_);
      train = {.spec = members.object("spec"), .training = members.object("training")};
      plain.erase("spec");
      plain.erase("training");
    }
    auto step = read_kind<ModelStep>(plain, where_, path, problems_);
    if (!step) return std::nullopt;
    if (trains) {
      TrainConfig tried = definition_.training;
      read_training(train.training, at(path + ".training"), tried, problems_);
      step = train;
    }
    if (first != trains) {
      problems_.push_back({at(path), first ? "comes first, and has no model to work on" : "trains from random weights",
                           first ? "begin with a step of the kind train" : "only the first step can do so"});
    }
    return step;
  }

  // Each trained spec, once.
  void check_specs() {
    std::set<std::string> seen;
    for (const DefinedCell& cell : definition_.cells) {
      if (cell.steps.empty()) continue;
      const TrainStep& step = std::get<TrainStep>(cell.steps.front());
      if (!seen.insert(step.spec.dump()).second) continue;
      try {
        const ArchSpec spec = definition_.trained_spec(step);
        check_objective(definition_.trained_config(step).examples.objective, stacks_of(spec.topology));
        if (const int64_t context = definition_.trained_config(step).context; context > spec.max_position_embeddings) {
          problems_.push_back(
              {at("training.context"),
               fmt::format("{} is more than max_position_embeddings, {}", context, spec.max_position_embeddings),
               "train on shorter sequences, or raise it in the base"});
        }
      } catch (const InputError& e) {
        problems_.insert(problems_.end(), e.problems().begin(), e.problems().end());
      }
    }
  }

  StudySize size_;
  std::string where_;
  Problems problems_;
  Json axes_ = Json::object();
  std::set<std::string> cells_;  // the axes of each
  StudyDefinition definition_;
};

}  // namespace

int64_t StudyDefinition::vocab_size() const {
  for (const DefinedCell& cell : cells) {
    if (!cell.steps.empty()) return trained_spec(std::get<TrainStep>(cell.steps.front())).vocab_size;
  }
  return byte_tokenizer()->vocab_size();  // no model: of the text, too, nothing is asked
}

ArchSpec StudyDefinition::trained_spec(const TrainStep& step) const {
  Json spec = merge_documents(base, step.spec);
  if (!spec.contains("name")) spec["name"] = name;
  return spec_from_json(spec, name + ": base, with the cell's changes");
}

TrainConfig StudyDefinition::trained_config(const TrainStep& step) const {
  TrainConfig config = training;
  Problems none;
  Json given = config_to_json(training);
  given.erase("seed");
  if (step.training.contains("steps") || step.training.contains("lr")) {
    for (const char* follows : {"warmup", "min-lr", "decay-steps"}) given.erase(follows);
  }
  given.update(step.training);
  read_training(given, name, config, none);
  return config;
}

StudyDefinition read_study_definition(const Json& document, StudySize size, const std::string& where) {
  return DefinitionReader(size, where).read(document);
}

}  // namespace transept
