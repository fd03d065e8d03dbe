#include "study/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/format_number.h"
#include "study/study_charts.h"
#include "study/study_document.h"

namespace transept {
namespace {

using Names = std::vector<std::string>;

// Keys of the objects in the order in which they first come.
void add_keys(Names& names, const Json& object) {
  for (auto i = object.begin(); object.is_object() && i != object.end(); ++i) {
    if (std::find(names.begin(), names.end(), i.key()) == names.end()) names.push_back(i.key());
  }
}

Cell cell_of(const Json& value) {
  if (value.is_number()) return {axis_text(value), value.get<double>()};
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Cell cell_at(const Json& object, const std::string& key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return !object.is_object() || found == object.end() ? Cell("") : cell_of(*found);
}

// A column is numeric where all that it holds is a number.
void append_columns(Table& table, const Names& names, const std::vector<const Json*>& objects) {
  for (const std::string& name : names) {
    const bool numeric = std::all_of(objects.begin(), objects.end(), [&](const Json* object) {
      const Cell cell = cell_at(*object, name);
      return cell.text.empty() || std::isfinite(cell.number);
    });
    table.columns.push_back({name, numeric});
  }
}

const StudySummary* row_of(const StudyDocument& study, const std::string& metric, const StudyAxes& where) {
  const auto found = std::find_if(study.summary.begin(), study.summary.end(), [&](const StudySummary& row) {
    return row.metric == metric && matches(row.axes, where);
  });
  return found == study.summary.end() ? nullptr : &*found;
}

KeyFigure key_figure(const StudyDocument& study, const StudyFigure& figure) {
  const StudySummary* row = row_of(study, figure.metric, figure.where);
  if (!row) return {figure.label, std::string(kNothing), "not measured"};
  const auto compared = [&](const StudyAxes& axes) {
    return axes.is_null() ? nullptr : row_of(study, figure.metric, axes);
  };
  const StudySummary *const over = compared(figure.over), *const from = compared(figure.from),
                            *const to = compared(figure.to);
  if ((!figure.over.is_null() && !over) || (!figure.from.is_null() && !(from && to)))
    return {figure.label, std::string(kNothing), "what it is compared with was not measured"};
  if (over) return {figure.label, format_number(row->mean / over->mean) + " ×", figure.note};
  if (from)
    return {figure.label, fmt::format("{:.1f} %", 100 * (from->mean - row->mean) / (from->mean - to->mean)),
            figure.note};
  return {figure.label, format_spread(row->mean, row->sd), figure.note};
}

// How far a reader may trust the figures.
std::string size_words(const StudyDocument& study) {
  const auto runs =
      std::count_if(study.cells.begin(), study.cells.end(), [](const StudyCell& cell) { return cell.refused.empty(); });
  std::string text = study.size.empty() ? "" : fmt::format("Size: {}. ", study.size);
  text += fmt::format("{} measured {}", format_count(static_cast<double>(runs)), runs == 1 ? "cell" : "cells");
  if (study.summary.empty()) return text + ".";
  const auto [fewest, most] = std::minmax_element(study.summary.begin(), study.summary.end(),
                                                  [](const auto& a, const auto& b) { return a.n < b.n; });
  if (most->n <= 1) return text + "; one seed, no spread.";
  return text +
         fmt::format("; ± and bands are the standard deviation over {} seeds.",
                     fewest->n == most->n ? std::to_string(most->n) : fmt::format("{} to {}", fewest->n, most->n));
}

Section results_section(const StudyDocument& study) {
  Section section{"Results", {Paragraph{size_words(study)}}};
  for (const StudyChart& chart : study.charts) {
    for (ReportBlock& block : study_chart_blocks(study, chart)) section.blocks.push_back(std::move(block));
  }
  return section;
}

// The refused combinations, each once with its seeds counted.
std::optional<Section> refused_section(const StudyDocument& study) {
  struct Refused {
    const StudyCell* cell;
    int64_t seeds;
  };
  std::vector<Refused> refused;
  Names axes;
  std::vector<const Json*> objects;
  for (const StudyCell& cell : study.cells) {
    if (cell.refused.empty()) continue;
    const auto same = std::find_if(refused.begin(), refused.end(), [&](const Refused& r) {
      return r.cell->axes == cell.axes && r.cell->refused == cell.refused;
    });
    if (same != refused.end()) {
      ++same->seeds;
      continue;
    }
    refused.push_back({&cell, 1});
    objects.push_back(&cell.axes);
    add_keys(axes, cell.axes);
  }
  if (refused.empty()) return std::nullopt;
  Table table{"", {}, {}, "Combinations that do not exist or cannot be trained are refused before anything runs."};
  append_columns(table, axes, objects);
  table.columns.push_back({"Seeds", true});
  table.columns.push_back({"Reason"});
  for (const Refused& r : refused) {
    std::vector<Cell> row;
    for (const std::string& axis : axes) row.push_back(cell_at(r.cell->axes, axis));
    row.emplace_back(std::to_string(r.seeds), static_cast<double>(r.seeds));
    row.emplace_back(r.cell->refused);
    table.rows.push_back(std::move(row));
  }
  return Section{"Refused", {std::move(table)}};
}

// The summary rows of one set of axes: a row a combination, a column a metric.
struct SummaryGroup {
  Names axes, metrics;
  std::vector<StudyAxes> rows;                                            // in the order in which they first come
  std::map<std::pair<std::string, std::string>, const StudySummary*> at;  // of (axes, metric)
};

std::vector<SummaryGroup> summary_groups(const StudyDocument& study) {
  std::vector<SummaryGroup> groups;
  for (const StudySummary& row : study.summary) {
    Names axes;
    add_keys(axes, row.axes);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const SummaryGroup& g) { return g.axes == axes; });
    if (group == groups.end()) group = groups.insert(groups.end(), {axes, {}, {}, {}});
    if (std::find(group->metrics.begin(), group->metrics.end(), row.metric) == group->metrics.end())
      group->metrics.push_back(row.metric);
    if (std::find(group->rows.begin(), group->rows.end(), row.axes) == group->rows.end())
      group->rows.push_back(row.axes);
    group->at[{axes_text(row.axes), row.metric}] = &row;
  }
  return groups;
}

std::string joined(const Names& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

Table summary_table(const SummaryGroup& group, bool only) {
  Table table{only ? "" : "By " + joined(group.axes), {}, {}, "Mean ± standard deviation over the seeds."};
  std::vector<const Json*> objects;
  objects.reserve(group.rows.size());
  for (const StudyAxes& axes : group.rows) objects.push_back(&axes);
  append_columns(table, group.axes, objects);
  for (const std::string& metric : group.metrics) table.columns.push_back({metric, true});
  table.columns.push_back({"Seeds", true});
  for (const StudyAxes& axes : group.rows) {
    std::vector<Cell> row;
    for (const std::string& axis : group.axes) row.push_back(cell_at(axes, axis));
    std::set<int64_t> seeds;
    for (const std::string& metric : group.metrics) {
      const auto found = group.at.find({axes_text(axes), metric});
      if (found == group.at.end()) {
        row.emplace_back("");
        continue;
      }
      row.emplace_back(format_spread(found->second->mean, found->second->sd), found->second->mean);
      seeds.insert(found->second->n);
    }
    row.emplace_back(
        seeds.size() == 1 ? std::to_string(*seeds.begin()) : fmt::format("{} to {}", *seeds.begin(), *seeds.rbegin()),
        static_cast<double>(*seeds.begin()));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::optional<Section> summary_section(const StudyDocument& study) {
  const std::vector<SummaryGroup> groups = summary_groups(study);
  if (groups.empty()) return std::nullopt;
  Section section{"All means", {}};
  for (const SummaryGroup& group : groups) section.blocks.emplace_back(summary_table(group, groups.size() == 1));
  return section;
}

std::optional<Section> equal_section(const StudyDocument& study) {
  if (study.equal.empty()) return std::nullopt;
  Table table{"",
              {{"What"}, {"Value"}, {"Among"}, {"Count", true}},
              {},
              "Asserted before anything was measured: had one of them differed, there would be no page."};
  for (const StudyEquality& e : study.equal)
    table.rows.push_back({e.what, e.value, e.among, {format_count(e.count), e.count}});
  return Section{"What is equal", {std::move(table)}};
}

std::optional<Section> models_section(const StudyDocument& study) {
  if (study.models.empty()) return std::nullopt;
  Table table{"", {}, {}, "Keys of the specs that differ; all others are equal."};
  Names axes, keys;
  std::vector<const Json*> axes_objects, differs_objects;
  for (const StudyModel& model : study.models) {
    add_keys(axes, model.axes);
    add_keys(keys, model.differs);
    axes_objects.push_back(&model.axes);
    differs_objects.push_back(&model.differs);
  }
  append_columns(table, axes, axes_objects);
  append_columns(table, keys, differs_objects);
  table.columns.push_back({"Parameters", true});
  table.columns.push_back({"FLOPs a token in training", true});
  for (const StudyModel& model : study.models) {
    std::vector<Cell> row;
    for (const std::string& axis : axes) row.push_back(cell_at(model.axes, axis));
    for (const std::string& key : keys) row.push_back(cell_at(model.differs, key));
    row.emplace_back(format_count(model.parameters), model.parameters);
    row.emplace_back(format_si(model.train_flops_per_token, ""), model.train_flops_per_token);
    table.rows.push_back(std::move(row));
  }
  Section section{"What differs", {std::move(table)}};
  for (const StudyModel& model : study.models) {
    if (model.spec.is_null()) continue;
    const std::string text = model.spec.dump(2, ' ', false, Json::error_handler_t::replace);
    const std::string name = axes_text(model.axes);
    section.blocks.emplace_back(Code{name.empty() ? "The full spec" : "The full spec of " + name, text, true});
  }
  return section;
}

std::optional<Section> protocol_section(const StudyDocument& study) {
  std::string text;
  for (const std::string& sentence : study.protocol) text += (text.empty() ? "" : " ") + sentence;
  Section section{"Protocol", {}};
  if (!text.empty()) section.blocks.emplace_back(Paragraph{text});
  if (!study.data.empty()) section.blocks.emplace_back(Paragraph{"Data: " + study.data});
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace

std::string format_spread(double mean, double sd) {
  constexpr double kPlainFrom = 1e-3, kPlainTo = 1e15;  // beyond, decimals would be many or mean nothing
  const double size = std::abs(mean);
  if (!std::isfinite(sd) || !std::isfinite(mean)) return format_number(mean);
  if (sd < size * 1e-9 || sd < 1e-12 || std::max(size, sd) < kPlainFrom || std::max(size, sd) >= kPlainTo)
    return fmt::format("{} ± {}", format_number(mean), format_number(sd));
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(sd))), 0, 9);
  if (decimals == 0) return fmt::format("{} ± {}", format_count(mean), format_count(sd));
  return fmt::format("{:.{}f} ± {:.{}f}", mean, decimals, sd, decimals);
}

ReportPage study_report_page(const Json& results) {
  const StudyDocument study = read_study(results);
  ReportPage page;
  page.title = !study.title.empty() ? study.title : !study.name.empty() ? study.name : "Study";
  page.subtitle = study.question;
  for (const StudyFigure& figure : study.figures) page.figures.push_back(key_figure(study, figure));
  page.sections.push_back(results_section(study));
  for (std::optional<Section> section : {refused_section(study), summary_section(study), equal_section(study),
                                         models_section(study), protocol_section(study)}) {
    if (section) page.sections.push_back(std::move(*section));
  }
  page.command = study.command;
  page.machine = study.machine;
  return page;
}

}  // namespace transept
