#include "study/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/format_number.h"

namespace transept {
namespace {

constexpr size_t kFewModels = 12;  // bars by name up to here; beyond, points
constexpr size_t kFewLines = 8;    // the palette's length

double as_double(int64_t n) { return static_cast<double>(n); }

// Bytes of one sequence's cache at a context; a window's layers stop growing when it is full.
double cache_at(const Plan& plan, int64_t context) {
  double elements = 0;
  for (const LayerGroup& l : plan.parameters.layers) {
    elements += as_double(l.count * l.kv_elements_per_token) * as_double(cached_tokens(l.sliding_window, context));
  }
  const CacheSize& c = plan.kv_cache;
  return c.elements_per_token == 0 ? 0 : elements * as_double(c.bytes_per_token) / as_double(c.elements_per_token);
}

Series cache_line(const Plan& plan, int64_t longest) {
  Series s{.name = plan.name, .x = {}, .y = {}};
  for (int64_t context = 128; context <= longest; context *= 2) {
    s.x.push_back(as_double(context));
    s.y.push_back(cache_at(plan, context));
  }
  return s;
}

LineChart cache_chart(const std::vector<Plan>& models) {
  LineChart chart{"KV cache of one sequence", {}, {"Context, tokens", true}, {"Bytes", true}, {}, true};
  int64_t longest = 4096;
  for (const Plan& m : models) longest = std::max(longest, m.architecture.context);
  for (const Plan& m : models) chart.series.push_back(cache_line(m, std::min<int64_t>(longest, 1 << 20)));
  return chart;
}

using FigureOf = std::function<double(const Plan&)>;

BarChart bars(const std::vector<Plan>& models, std::string title, std::string label, const FigureOf& figure) {
  BarChart chart{std::move(title), {}, std::move(label), {}, {{"", {}}}};
  chart.series.front().name = chart.value_label;
  for (const Plan& m : models) {
    chart.categories.push_back(m.name);
    chart.series.front().values.push_back(figure(m));
  }
  return chart;
}

// One series a kind of attention.
PointChart cloud(const std::vector<Plan>& models, std::string title, Axis x, Axis y, const FigureOf& x_of,
                 const FigureOf& y_of) {
  PointChart chart{
      std::move(title), "A point a model; its name shows under the pointer.", std::move(x), std::move(y), {}, true};
  for (const char* kind : {"MHA", "GQA", "MQA", "MLA"}) {
    PointSeries s{kind, {}, {}, {}};
    for (const Plan& m : models) {
      if (m.architecture.attention != kind) continue;
      s.x.push_back(x_of(m));
      s.y.push_back(y_of(m));
      s.names.push_back(m.name);
    }
    if (!s.x.empty()) chart.series.push_back(std::move(s));
  }
  return chart;
}

double parameters(const Plan& m) { return as_double(m.parameters.total); }
double active(const Plan& m) { return as_double(m.parameters.active); }
double cache_a_token(const Plan& m) { return as_double(m.kv_cache.bytes_per_token); }
double training(const Plan& m) { return m.flops.train_per_token; }

Table table_of(const std::vector<Plan>& models) {
  const ComparisonTable from = comparison_table(models);
  Table table{"", {}, {}, "Parameters count each tensor once. Bytes are in the planned types."};
  for (const ComparisonTable::Column& c : from.columns) table.columns.push_back({c.name, c.numeric});
  for (const auto& row : from.rows) {
    std::vector<Cell> cells;
    for (const ComparisonTable::Value& v : row) cells.emplace_back(v.text, v.number);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// The comparison table of one model, turned: a row a figure.
Table facts_of(const Plan& model) {
  const ComparisonTable from = comparison_table({model});
  Table table{"", {{"Figure", false}, {"Value", false}}, {}};
  for (size_t c = 1; c < from.columns.size(); ++c) {
    if (!from.rows[0][c].text.empty()) table.rows.push_back({Cell(from.columns[c].name), Cell(from.rows[0][c].text)});
  }
  return table;
}

BarChart parts_chart(const ParameterCounts& p) {
  BarChart chart{"Parameters by part", {}, "Parameters", {}, {{"Parameters", {}}}};
  const std::pair<const char*, int64_t> parts[] = {{"Embedding", p.embedding}, {"Position", p.position},
                                                   {"Attention", p.attention}, {"Cross-attention", p.cross_attention},
                                                   {"Feed-forward", p.ffn},    {"Norms", p.norm},
                                                   {"Pooler", p.pooler},       {"Head", p.head}};
  for (const auto& [name, n] : parts) {
    if (n == 0) continue;
    chart.categories.emplace_back(name);
    chart.series.front().values.push_back(as_double(n));
  }
  return chart;
}

Table layers_table(const ParameterCounts& p) {
  Table table{"Layers",
              {{"Layers", false},
               {"Attention", true},
               {"Feed-forward", true},
               {"Norms", true},
               {"All of one", true},
               {"Active of one", true},
               {"KV elements a token", true},
               {"Window", true}},
              {}};
  const auto count = [](int64_t n) { return Cell(format_count(as_double(n)), as_double(n)); };
  for (const LayerGroup& l : p.layers) {
    const std::string name = fmt::format("{}{} to {}", l.encoder ? "encoder " : "", l.first, l.first + l.count - 1);
    table.rows.push_back({Cell(name), count(l.attention + l.cross_attention), count(l.ffn), count(l.norm),
                          count(l.total()), count(l.active), count(l.kv_elements_per_token), count(l.sliding_window)});
  }
  return table;
}

BarChart memory_chart(const Plan& plan) {
  const MemoryNeeds& m = plan.memory;
  BarChart chart{"Memory of training", {}, "MiB", {}, {{"MiB", {}}}};
  const std::pair<const char*, int64_t> terms[] = {{"Weights", m.training_weights},
                                                   {"Gradients", m.gradients},
                                                   {"Master weights", m.master_weights},
                                                   {"Optimizer", m.optimizer},
                                                   {"Activations", m.activations}};
  for (const auto& [name, n] : terms) {
    if (n == 0) continue;
    chart.categories.emplace_back(name);
    chart.series.front().values.push_back(as_double(n) / 0x1p20);
  }
  return chart;
}

Table conventions_table(const FlopCounts& f) {
  Table table{"FLOPs a token in training, as they are counted",
              {{"Convention", false}, {"Formula", false}, {"Source", false}, {"FLOPs", true}},
              {}};
  for (const FlopConvention& c : f.conventions)
    table.rows.push_back(
        {Cell(c.name), Cell(c.formula), Cell(c.source), Cell(format_si(c.train_per_token, ""), c.train_per_token)});
  return table;
}

}  // namespace

ReportPage plan_page(const Plan& plan) {
  ReportPage page{.title = plan.name};
  page.subtitle = fmt::format("Planned at {} tokens, {} at a time", format_count(as_double(plan.context)),
                              plan.batch == 1 ? "one sequence" : format_count(as_double(plan.batch)) + " sequences");
  page.figures = {{"Parameters", format_si(parameters(plan), ""), format_count(parameters(plan))},
                  {"Active a token", format_si(active(plan), ""), format_count(active(plan))},
                  {"Weights", format_bytes(as_double(plan.memory.weights)), plan.dtype},
                  {"KV cache", format_bytes(as_double(plan.kv_cache.bytes)), "of one sequence"},
                  {"Training", format_bytes(as_double(plan.memory.peak_training)), "peak memory"},
                  {"Work", format_si(plan.flops.train_per_token, "FLOP"), "a token in training"}};
  page.sections.push_back({"Architecture", {facts_of(plan)}});
  page.sections.push_back({"Parameters", {parts_chart(plan.parameters), layers_table(plan.parameters)}});
  page.sections.push_back({"Memory", {memory_chart(plan)}});
  if (plan.kv_cache.elements_per_token > 0) page.sections.back().blocks.emplace_back(cache_chart({plan}));
  page.sections.push_back({"Work", {conventions_table(plan.flops)}});
  return page;
}

ReportPage comparison_page(const std::vector<Plan>& models, const std::string& title) {
  ReportPage page{.title = title};
  page.subtitle = "Counted from their specs; no weights were read";
  Section charts{"Charts", {}};
  if (models.size() <= kFewModels) {
    charts.blocks = {bars(models, "Size", "Parameters", parameters),
                     bars(models, "Cache", "KV bytes a token", cache_a_token),
                     bars(models, "Work", "FLOPs a token in training", training)};
  } else {
    charts.blocks = {cloud(models, "Cache against size", {"Parameters", true}, {"KV bytes a token", true}, parameters,
                           cache_a_token),
                     cloud(models, "Work against size", {"Parameters", true}, {"FLOPs a token in training", true},
                           parameters, training)};
  }
  if (models.size() <= kFewLines) charts.blocks.emplace_back(cache_chart(models));
  page.sections.push_back(std::move(charts));
  page.sections.push_back({"Models", {table_of(models)}});
  return page;
}

}  // namespace transept
