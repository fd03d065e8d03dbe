#include "study/scaling_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/format_number.h"
#include "base/problem.h"
#include "base/quantity.h"

namespace transept {
namespace {

constexpr size_t kMaxPoints = 500;  // of a cloud: more cannot be told apart and only swell the file

// Values from low to high in equal ratios.
std::vector<double> geometric(double low, double high, int count) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values.push_back(low * std::pow(high / low, static_cast<double>(i) / (count - 1)));
  return values;
}

// Points that no line joins: a gap before each.
Series cloud(std::string name, const std::vector<double>& xs, const std::vector<double>& ys) {
  std::vector<std::pair<double, double>> points;
  points.reserve(xs.size());
  for (size_t i = 0; i < xs.size(); ++i) points.emplace_back(xs[i], ys[i]);
  std::sort(points.begin(), points.end());
  const size_t every = (points.size() + kMaxPoints - 1) / kMaxPoints;
  Series series{std::move(name), {}, {}};
  for (size_t i = 0; i < points.size(); i += every) {
    const auto& [x, y] = points[i];
    series.x.insert(series.x.end(), {x, x});
    series.y.insert(series.y.end(), {static_cast<double>(NAN), y});
  }
  return series;
}

std::string with_error(double value, const std::optional<double>& error) {
  return error ? fmt::format("{} ± {}", format_number(value), format_number(*error)) : format_number(value);
}

std::string with_range(double value, const std::optional<ExponentRange>& range) {
  return range ? fmt::format("{} ({}–{})", format_number(value), format_number(range->low), format_number(range->high))
               : format_number(value);
}

Cell quantity(double value) { return {quantity_text(value), value}; }

Section optima(const ScalingReport& report) {
  Table table{"",
              {{"Set"},
               {"Parameters", true},
               {"Tokens", true},
               {"Tokens a parameter", true},
               {"FLOPs", true},
               {"Predicted loss", true}},
              {}};
  for (const auto& [law, o] : report.rows) {
    table.rows.push_back({law.name, quantity(o.params), quantity(o.tokens), Cell(o.tokens_per_param()),
                          quantity(o.flops), Cell(law.loss ? law.loss->loss(o.params, o.tokens) : NAN)});
  }
  table.caption = "FLOPs are 6 × parameters × tokens. A set without a loss gives a compute-optimal line only.";
  return {"Compute-optimal for " + report.given, {table}};
}

Section iso_flop(const ScalingReport::Row& row) {
  const ParametricLoss& law = *row.law.loss;
  constexpr double kAround = 12;  // sizes from N* / 12 to 12 N*
  LineChart chart{"Loss by size at equal compute",  {}, {"Parameters", true},
                  {"Predicted loss, nats a token"}, {}, true};
  Series best{"compute-optimal", {}, {}};
  for (const double factor : {0.01, 0.1, 1.0, 10.0, 100.0}) {
    const Allocation o = row.law.frontier.at_flops(row.optimum.flops * factor);
    Series curve{quantity_text(o.flops) + " FLOPs", geometric(o.params / kAround, o.params * kAround, 41), {}};
    for (const double n : curve.x) curve.y.push_back(law.loss(n, o.flops / (kTrainFlops * n)));
    chart.series.push_back(std::move(curve));
    best.x.push_back(o.params);
    best.y.push_back(law.loss(o.params, o.tokens));
  }
  chart.series.push_back(std::move(best));
  chart.caption = fmt::format(
      "By {}. Each curve spends one budget on models of different sizes, 6 × parameters × tokens; its lowest point is "
      "the "
      "compute-optimal model. The curves are flat there: half or twice the size costs little loss.",
      row.law.name);
  return {"IsoFLOP curves", {chart}};
}

Section frontiers(const ScalingReport& report, double flops) {
  LineChart tokens{"Compute-optimal tokens", {}, {"FLOPs", true}, {"Tokens", true}, {}};
  LineChart ratio{"Tokens a parameter", {}, {"FLOPs", true}, {"Compute-optimal tokens a parameter", true}, {}};
  const std::vector<double> budgets = geometric(std::min(1e18, flops / 100), std::max(1e26, flops * 100), 49);
  for (const auto& row : report.rows) {
    Series t{row.law.name, budgets, {}}, r{row.law.name, budgets, {}};
    for (const double c : budgets) {
      const Allocation o = row.law.frontier.at_flops(c);
      t.y.push_back(o.tokens);
      r.y.push_back(o.tokens_per_param());
    }
    tokens.series.push_back(std::move(t));
    ratio.series.push_back(std::move(r));
  }
  ratio.caption =
      "The runs behind the Chinchilla sets spent 6e18 to 3e21 FLOPs, those behind Llama 3's 6e18 to 1e22: "
      "beyond them the lines are extrapolation, and they part.";
  return {"The sets side by side", {tokens, ratio}};
}

Section constants(const ScalingReport& report) {
  Table table{"",
              {{"Set"},
               {"a: parameters ~ FLOPs^a", true},
               {"b: tokens ~ FLOPs^b", true},
               {"E", true},
               {"A", true},
               {"B", true},
               {"alpha", true},
               {"beta", true}},
              {}};
  Table sources{"", {{"Set"}, {"Source"}, {"Note"}}, {}};
  for (const auto& row : report.rows) {
    const ScalingLaw& law = row.law;
    const double a = law.frontier.a(), b = law.frontier.b();
    std::vector<Cell> cells{
        law.name,
        {law.params_exponent_range ? with_range(a, law.params_exponent_range) : with_error(a, law.exponent_error), a},
        {with_range(b, law.tokens_exponent_range), b}};
    for (double ParametricLoss::* constant :
         {&ParametricLoss::E, &ParametricLoss::A, &ParametricLoss::B, &ParametricLoss::alpha, &ParametricLoss::beta}) {
      if (!law.loss) {
        cells.emplace_back(NAN);
        continue;
      }
      const double value = *law.loss.*constant;
      const std::optional<double> error =
          law.standard_error ? std::optional(*law.standard_error.*constant) : std::nullopt;
      cells.emplace_back(with_error(value, error), value);
    }
    table.rows.push_back(std::move(cells));
    sources.rows.push_back({law.name, law.source, law.note});
  }
  table.caption =
      "Loss = E + A / parameters^alpha + B / tokens^beta. ±: standard error. In brackets: 10th to 90th "
      "percentile over resampled runs, as published.";
  return {"Constants, errors, sources", {table, sources}};
}

Section over_training(const ScalingReport& report, const ScalingReport::Row& row) {
  const ParametricLoss& law = *row.law.loss;
  const Allocation& optimal = row.optimum;
  const double loss = law.loss(optimal.params, optimal.tokens);
  const LifetimeCost& cost = report.cost;
  const bool plain = cost.train_mfu == 1 && cost.serve_mfu == 1 && cost.price_ratio == 1;

  std::vector<double> sizes{optimal.params};
  if (report.smaller) sizes.push_back(*report.smaller);
  for (const double fraction : {0.75, 0.5, 0.35, 0.25}) sizes.push_back(fraction * optimal.params);
  std::sort(sizes.begin() + 1, sizes.end(), std::greater<>());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());

  LineChart total{"Training and serving",
                  {},
                  {"Tokens served", true},
                  {plain ? "FLOPs in all" : "Cost in all, in FLOPs trained at full utilization", true},
                  {}};
  LineChart relative{"Beside the compute-optimal model", {}, {"Tokens served", true}, {"Cost over its cost"}, {}};
  Table table{"",
              {{"Parameters", true},
               {"Tokens trained on", true},
               {"Tokens a parameter", true},
               {"Training FLOPs", true},
               {"Cheaper from served tokens on", true}},
              {}};
  const std::vector<double> served = geometric(optimal.tokens / 30, optimal.tokens * 300, 49);
  const auto cost_of = [&](double params, double tokens, double t) {
    return cost.train(params, tokens) + cost.serve(params, t);
  };
  for (const double params : sizes) {
    const std::optional<double> tokens = tokens_to_loss(law, params, loss);
    if (params > optimal.params || !tokens) {
      table.rows.push_back({quantity(params), Cell("no number reaches the loss"), Cell(NAN), Cell(NAN), Cell(NAN)});
      if (params > optimal.params) table.rows.back()[1] = Cell("larger than the compute-optimal model");
      continue;
    }
    const bool is_optimal = params == optimal.params;
    table.rows.push_back({quantity(params), quantity(*tokens), Cell(*tokens / params),
                          quantity(kTrainFlops * params * *tokens),
                          is_optimal ? Cell("compute-optimal")
                                     : quantity(break_even(law, optimal, params, cost, "params").served_tokens)});
    Series t{quantity_text(params), served, {}}, r{quantity_text(params), served, {}};
    for (const double s : served) {
      t.y.push_back(cost_of(params, *tokens, s));
      r.y.push_back(cost_of(params, *tokens, s) / cost_of(optimal.params, optimal.tokens, s));
    }
    total.series.push_back(std::move(t));
    relative.series.push_back(std::move(r));
  }
  table.caption = fmt::format(
      "By {}, all at the predicted loss of {}, which no model below {} parameters reaches. Training costs 6 FLOPs a "
      "parameter and token, serving 2.",
      row.law.name, format_number(loss), quantity_text(least_params(law, loss)));
  if (!plain)
    table.caption +=
        fmt::format(" Utilization {} in training and {} in serving; an hour of serving costs {} of training.",
                    format_number(cost.train_mfu), format_number(cost.serve_mfu), format_number(cost.price_ratio));
  Section section{"Over-training: smaller and longer at equal loss", {total, relative, table}};
  if (report.served_tokens) {
    const LifetimeOptimum best = lifetime_optimum(law, optimal, *report.served_tokens, cost);
    section.blocks.emplace_back(Paragraph{fmt::format(
        "For {} served tokens the cheapest model of this loss has {} parameters trained on {} tokens, {} a "
        "parameter; training and serving together then cost {:.1f} % less than with the compute-optimal "
        "model.",
        quantity_text(*report.served_tokens), quantity_text(best.model.params), quantity_text(best.model.tokens),
        format_number(best.model.tokens_per_param()), 100 * best.saving)});
  }
  return section;
}

Section fitted(const ScalingReport& report) {
  const ScalingFit& fit = *report.fit;
  Table table{"",
              {{"Figure"},
               {"Fit", true},
               {"Standard error", true},
               {"5th percentile", true},
               {"95th percentile", true},
               {"Without the highest losses", true},
               {"Largest change by one run", true}},
              {}};
  for (size_t k = 0; k < kFitFigures.size(); ++k) {
    table.rows.push_back(
        {std::string(kFitFigures[k]), Cell(fit.figures[k]), Cell(fit.bootstrap ? fit.bootstrap->error[k] : NAN),
         Cell(fit.bootstrap ? fit.bootstrap->low[k] : NAN), Cell(fit.bootstrap ? fit.bootstrap->high[k] : NAN),
         Cell(fit.without_highest ? fit.without_highest->figures[k] : NAN),
         Cell(fit.leave_one_out ? fit.leave_one_out->change[k] : NAN)});
  }
  table.caption = fmt::format("{} runs of {}; params_exponent is a, tokens_per_param stands at {} FLOPs.",
                              report.runs.size(), report.runs_name, quantity_text(fit.flops));
  if (fit.bootstrap) table.caption += fmt::format(" Errors over {} resamples.", fit.bootstrap->resamples);
  if (fit.without_highest)
    table.caption += fmt::format(" The {} highest losses are left out in one column.", fit.without_highest->count);
  if (fit.leave_one_out) table.caption += fmt::format(" Left out one by one: {} runs.", fit.leave_one_out->tried);

  std::vector<double> predicted, measured, percent;
  for (size_t i = 0; i < report.runs.size(); ++i) {
    predicted.push_back(fit.law.loss(report.runs[i].params, report.runs[i].tokens));
    measured.push_back(report.runs[i].loss);
    percent.push_back(100 * std::expm1(fit.residuals[i]));
  }
  const auto [low, high] = std::minmax_element(predicted.begin(), predicted.end());
  LineChart agreement{"Measured beside predicted",
                      "A run on the line is met exactly.",
                      {"Predicted loss"},
                      {"Measured loss"},
                      {cloud("runs", predicted, measured), {"equal", {*low, *high}, {*low, *high}}}};
  LineChart residuals{"Residuals",
                      "A pattern over the loss means that the law does not hold over all of the runs.",
                      {"Predicted loss"},
                      {"Measured over predicted, %"},
                      {cloud("runs", predicted, percent)}};
  Section section{"The fit", {table, agreement, residuals}};
  for (const std::string& warning : fit.warnings) section.blocks.emplace_back(Paragraph{"Warning: " + warning + "."});
  return section;
}

}  // namespace

ReportPage scaling_report_page(const ScalingReport& report) {
  const auto chosen = std::find_if(report.rows.begin(), report.rows.end(),
                                   [&](const ScalingReport::Row& row) { return row.law.name == report.set; });
  TRANSEPT_CHECK(chosen != report.rows.end() && chosen->law.loss);
  const Allocation& o = chosen->optimum;
  ReportPage page;
  page.title = "Scaling laws: " + report.given;
  page.subtitle = "Compute-optimal sizes by every published set of constants; curves by " + chosen->law.name;
  const auto [fewest, most] = std::minmax_element(
      report.rows.begin(), report.rows.end(),
      [](const auto& x, const auto& y) { return x.optimum.tokens_per_param() < y.optimum.tokens_per_param(); });
  page.figures = {{"Parameters", quantity_text(o.params), "by " + chosen->law.name},
                  {"Tokens", quantity_text(o.tokens), format_number(o.tokens_per_param()) + " a parameter"},
                  {"Predicted loss", format_number(chosen->law.loss->loss(o.params, o.tokens)), "nats a token"},
                  {"Tokens a parameter",
                   fmt::format("{} to {}", format_number(fewest->optimum.tokens_per_param()),
                               format_number(most->optimum.tokens_per_param())),
                   "over all sets"}};
  page.sections.push_back(optima(report));
  if (report.fit) page.sections.push_back(fitted(report));
  page.sections.push_back(iso_flop(*chosen));
  page.sections.push_back(frontiers(report, o.flops));
  page.sections.push_back(over_training(report, *chosen));
  page.sections.push_back(constants(report));
  page.command = report.command;
  page.machine = report.machine;
  return page;
}

void write_scaling_report(const std::filesystem::path& path, const ScalingReport& report) {
  write_report(path, scaling_report_page(report));
}

}  // namespace transept
