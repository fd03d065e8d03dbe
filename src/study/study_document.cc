#include "study/study_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/format_number.h"
#include "base/problem.h"

namespace transept {
namespace {

bool is_scalar(const Json& value) { return value.is_string() || value.is_number(); }

std::string short_text(const Json& value) {
  constexpr size_t kShown = 40;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);  // ASCII, so it can be cut
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

// One object of the document at its path; what has another form becomes a problem and reads as empty.
class Reader {
 public:
  Reader(const Json& object, std::string path, Problems& problems)
      : object_(object), path_(std::move(path)), problems_(problems) {
    if (!object.is_object()) problem(path_, object, "an object");
  }

  std::string text(const std::string& key) const {
    const Json& value = at(key);
    if (value.is_null()) return {};
    if (!is_scalar(value)) problem(path(key), value, "a text");
    return axis_text(value);
  }

  double number(const std::string& key) const { return as_number(at(key), path(key)); }

  int64_t count(const std::string& key) const {
    const Json& value = at(key);
    if (value.is_null()) return 0;
    if (!value.is_number_integer()) problem(path(key), value, "a whole number");
    return value.is_number_integer() ? value.get<int64_t>() : 0;
  }

  bool flag(const std::string& key) const {
    const Json& value = at(key);
    if (!value.is_null() && !value.is_boolean()) problem(path(key), value, "true or false");
    return value.is_boolean() && value.get<bool>();
  }

  std::vector<std::string> texts(const std::string& key) const {
    std::vector<std::string> out;
    for (const auto& [item, where] : items(key)) {
      if (!is_scalar(*item)) problem(where, *item, "a text");
      out.push_back(axis_text(*item));
    }
    return out;
  }

  std::vector<double> numbers(const std::string& key) const {
    std::vector<double> out;
    for (const auto& [item, where] : items(key)) out.push_back(as_number(*item, where));
    return out;
  }

  // `lists`: a value may be a list of values.
  StudyAxes axes(const std::string& key, bool lists = false) const {
    StudyAxes out = Json::object();
    for (const auto& [name, value] : members(key)) {
      const bool list = lists && value->is_array() && std::all_of(value->begin(), value->end(), is_scalar);
      if (!list && !is_scalar(*value)) problem(path(key) + "." + name, *value, "a text or a number");
      if (list || is_scalar(*value)) out[name] = *value;
    }
    return out;
  }

  std::map<std::string, double> named_numbers(const std::string& key) const {
    std::map<std::string, double> out;
    for (const auto& [name, value] : members(key)) out[name] = as_number(*value, path(key) + "." + name);
    return out;
  }

  template <class Read>
  auto list(const std::string& key, const Read& read) const {
    std::vector<decltype(read(*this))> out;
    for (const auto& [item, where] : items(key)) out.push_back(read(Reader(*item, where, problems_)));
    return out;
  }

  template <class Read>
  auto named(const std::string& key, const Read& read) const {
    std::map<std::string, decltype(read(*this))> out;
    for (const auto& [name, value] : members(key)) out[name] = read(Reader(*value, path(key) + "." + name, problems_));
    return out;
  }

  Reader object(const std::string& key) const {
    static const Json kNone = Json::object();
    return {at(key).is_null() ? kNone : at(key), path(key), problems_};
  }

  const Json& at(const std::string& key) const {
    static const Json kNull;
    if (!object_.is_object()) return kNull;
    const auto found = object_.find(key);
    return found == object_.end() ? kNull : *found;
  }

  std::string path(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  void problem(const std::string& where, const Json& got, std::string_view wanted) const {
    problems_.push_back({where.empty() ? "results" : where,
                         fmt::format("{} is of type {}", short_text(got), got.type_name()),
                         fmt::format("expected {}", wanted)});
  }

  void differ(const std::string& key, size_t got, size_t wanted) const {
    if (got == wanted) return;
    problems_.push_back({path(key), fmt::format("holds {} values", got), fmt::format("expected {}", wanted)});
  }

 private:
  using Item = std::pair<const Json*, std::string>;
  std::vector<Item> items(const std::string& key) const {
    const Json& value = at(key);
    std::vector<Item> out;
    if (!value.is_null() && !value.is_array()) problem(path(key), value, "a list");
    for (size_t i = 0; value.is_array() && i < value.size(); ++i)
      out.emplace_back(&value[i], fmt::format("{}[{}]", path(key), i));
    return out;
  }

  using Member = std::pair<std::string, const Json*>;
  std::vector<Member> members(const std::string& key) const {
    const Json& value = at(key);
    std::vector<Member> out;
    if (!value.is_null() && !value.is_object()) problem(path(key), value, "an object");
    if (!value.is_object()) return out;
    for (auto i = value.begin(); i != value.end(); ++i) out.emplace_back(i.key(), &*i);
    return out;
  }

  double as_number(const Json& value, const std::string& where) const {
    if (!value.is_null() && !value.is_number()) problem(where, value, "a number or null");
    return value.is_number() ? value.get<double>() : NAN;
  }

  const Json& object_;
  std::string path_;
  Problems& problems_;
};

StudyCurve read_curve(const Reader& r) {
  StudyCurve curve{r.numbers("x"), r.numbers("y")};
  r.differ("y", curve.y.size(), curve.x.size());
  return curve;
}

StudyMap read_map(const Reader& r) {
  StudyMap map{r.text("name"), r.texts("rows"), r.texts("columns"), {}};
  const Json& values = r.at("values");
  if (!values.is_array()) {
    r.problem(r.path("values"), values, "a list of rows");
    return map;
  }
  r.differ("values", values.size(), map.rows.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string key = fmt::format("values[{}]", i);
    if (!values[i].is_array()) {
      r.problem(r.path(key), values[i], "a list of numbers");
      continue;
    }
    r.differ(key, values[i].size(), map.columns.size());
    for (const Json& value : values[i]) {
      if (!value.is_number() && !value.is_null()) r.problem(r.path(key), value, "a number or null");
      map.weights.push_back(value.is_number() ? value.get<double>() : NAN);
    }
  }
  return map;
}

StudyCell read_cell(const Reader& r) {
  return {r.axes("axes"),           r.count("seed"),  r.named_numbers("metrics"), r.named("curves", read_curve),
          r.list("maps", read_map), r.text("refused")};
}

StudySummary read_summary(const Reader& r) {
  StudySummary row{r.axes("axes"), r.text("metric"), r.number("mean"), r.number("sd"), r.count("n")};
  if (row.n < 2) row.sd = NAN;
  return row;
}

StudyChart read_chart(const Reader& r) {
  StudyChart chart{.kind = StudyChartKind::kLines,
                   .title = r.text("title"),
                   .caption = r.text("caption"),
                   .metric = r.text("metric"),
                   .x = r.text("x"),
                   .series = r.texts("series"),
                   .where = r.axes("where", true),
                   .log_x = r.flag("log_x"),
                   .log_y = r.flag("log_y"),
                   .x_label = r.text("x_label"),
                   .y_label = r.text("y_label")};
  const std::string kind = r.text("kind");
  if (kind == "bars") {
    chart.kind = StudyChartKind::kBars;
  } else if (kind == "curve") {
    chart.kind = StudyChartKind::kCurve;
    chart.metric = r.text("curve");
  } else if (kind == "maps") {
    chart.kind = StudyChartKind::kMaps;
  } else if (kind != "lines") {
    r.problem(r.path("kind"), r.at("kind"), "lines, bars, curve or maps");
  }
  if ((kind == "lines" || kind == "bars") && chart.x.empty()) r.problem(r.path("x"), r.at("x"), "the name of an axis");
  return chart;
}

StudyFigure read_figure(const Reader& r) {
  const auto axes = [&](const char* key) { return r.at(key).is_null() ? Json() : r.axes(key); };
  return {r.text("label"), r.text("metric"), r.text("note"), r.axes("where"), axes("over"), axes("from"), axes("to")};
}

StudyModel read_model(const Reader& r) {
  return {r.axes("axes"), r.at("differs"), r.at("spec"), r.number("parameters"), r.number("train_flops_per_token")};
}

StudyEquality read_equality(const Reader& r) {
  return {r.text("what"), r.text("among"), r.text("value"), r.number("count")};
}

Machine read_machine(const Reader& r) {
  return {r.text("cpu"),
          static_cast<int>(std::clamp<int64_t>(r.count("processors"), 0, 1 << 20)),
          r.count("memory_bytes"),
          r.text("system"),
          r.text("instruction_set"),
          r.text("commit")};
}

}  // namespace

StudyDocument read_study(const Json& results) {
  Problems problems;
  const Reader r(results, "", problems);
  StudyDocument study{.name = r.text("name"),
                      .title = r.text("title"),
                      .question = r.text("question"),
                      .size = r.text("size"),
                      .data = r.text("data"),
                      .command = r.text("command"),
                      .protocol = r.texts("protocol"),
                      .equal = r.list("equal", read_equality),
                      .models = r.list("models", read_model),
                      .cells = r.list("cells", read_cell),
                      .summary = r.list("summary", read_summary),
                      .charts = r.list("charts", read_chart),
                      .figures = r.list("figures", read_figure),
                      .machine = read_machine(r.object("machine"))};
  throw_if_any(std::move(problems));
  return study;
}

std::string axis_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? exact_number(value.get<double>()) : std::string();
}

std::string axes_text(const StudyAxes& axes) {
  std::string out;
  for (auto i = axes.begin(); i != axes.end(); ++i) {
    if (!out.empty()) out += ", ";
    out += i.key() + " = " + axis_text(*i);
  }
  return out;
}

bool matches(const StudyAxes& axes, const StudyAxes& where) {
  for (auto wanted = where.begin(); wanted != where.end(); ++wanted) {
    const auto got = axes.find(wanted.key());
    if (got == axes.end()) return false;
    const bool meets =
        wanted->is_array() ? std::find(wanted->begin(), wanted->end(), *got) != wanted->end() : *wanted == *got;
    if (!meets) return false;
  }
  return true;
}

}  // namespace transept
