#include "study/training_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format_number.h"
#include "train/metrics.h"
#include "train/progress.h"

namespace transept {
namespace {

class Curves {
 public:
  explicit Curves(const std::vector<Json>& metrics) : metrics_(metrics) {
    by_tokens_ =
        std::any_of(metrics.begin(), metrics.end(), [](const Json& r) { return std::isfinite(metric(r, "tokens")); });
  }

  Axis x() const { return {by_tokens_ ? "Tokens" : "Step"}; }

  // Records with the key (null, a NaN of the run, included: it shows as a gap).
  Series series(std::string name, const std::string& key) const {
    Series s{std::move(name), {}, {}};
    for (const Json& r : metrics_) {
      const double at = metric(r, by_tokens_ ? "tokens" : "step");
      if (!std::isfinite(at) || !r.contains(key)) continue;
      s.x.push_back(at);
      s.y.push_back(metric(r, key));
    }
    thinned_ = thinned_ || s.x.size() > kMaxLinePoints;
    thin(s);
    return s;
  }

  double last(const std::string& key) const {
    for (auto r = metrics_.rbegin(); r != metrics_.rend(); ++r) {
      if (std::isfinite(metric(*r, key))) return metric(*r, key);
    }
    return NAN;
  }

  double best(const std::string& key) const {
    double best = NAN;
    for (const Json& r : metrics_) best = std::fmin(best, metric(r, key));  // fmin passes over NaN
    return best;
  }

  bool thinned() const { return thinned_; }

 private:
  const std::vector<Json>& metrics_;
  bool by_tokens_ = false;
  mutable bool thinned_ = false;
};

LineChart one_line(std::string title, Axis x, Axis y, Series series) {
  return {std::move(title), {}, std::move(x), std::move(y), {std::move(series)}};
}

Table planned_beside_measured(const TrainingReport& report) {
  const auto bytes = [](double v) { return format_bytes(v); };
  const auto count = [](double v) { return format_count(v); };
  const auto flops = [](double v) { return format_si(v, "FLOP"); };
  Table table{"", {{"Quantity"}, {"Planned", true}, {"Measured", true}, {"Difference", true}}, {}};
  const auto row = [&](const char* name, double planned, double measured, const auto& text) {
    const double difference = (measured - planned) / planned;
    const std::string words = planned == measured         ? "exact"
                              : std::isfinite(difference) ? format_percent(difference)
                                                          : std::string(kNothing);
    table.rows.push_back({name,
                          {text(planned), planned},
                          {text(measured), measured},
                          {words, std::isfinite(difference) ? difference : NAN}});
  };
  const auto both = [&](const char* name, const char* path, const auto& text) {
    row(name, number_at(report.plan, path), number_at(report.measured, path), text);
  };
  both("Parameters", "parameters.total", count);
  both("Weights", "memory.weights", bytes);
  both("Gradients", "memory.gradients", bytes);
  both("Optimizer state", "memory.optimizer", bytes);
  both("Activations", "memory.activations", bytes);
  both("Peak memory", "memory.peak_training", bytes);
  const double per_token = number_at(report.plan, "flops.train_per_token");
  row("Work a step", report.tokens_per_step > 0 ? per_token * report.tokens_per_step : NAN,
      number_at(report.measured, "flops.train_per_step"), flops);
  row("Rate of work", NAN, number_at(report.measured, "flops_per_second"),
      [](double v) { return format_si(v, "FLOP/s"); });
  row("Tokens a second", NAN, number_at(report.measured, "tokens_per_second"), count);
  table.caption =
      "Difference: measured less planned, over planned. Peak memory is resident memory beyond the program's own base.";
  return table;
}

}  // namespace

double number_at(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (true) {
    const size_t dot = path.find('.');
    if (!at->is_object()) return NAN;
    const auto found = at->find(std::string(path.substr(0, dot)));
    if (found == at->end()) return NAN;
    at = &*found;
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return at->is_number() ? at->get<double>() : NAN;
}

ReportPage training_report_page(const TrainingReport& report) {
  const Curves curves(report.metrics);
  ReportPage page;
  const auto name = report.spec.is_object() ? report.spec.find("name") : report.spec.end();
  const bool named = report.spec.is_object() && name != report.spec.end() && name->is_string();
  page.title = named ? name->get<std::string>() : "Training run";
  const double step = curves.last("step"), tokens = curves.last("tokens");
  page.subtitle = "A training run";
  if (!report.data.empty()) page.subtitle += " on " + report.data;
  if (std::isfinite(step)) page.subtitle += fmt::format(": {} steps", format_count(step));
  if (std::isfinite(tokens)) page.subtitle += fmt::format(", {} tokens", format_si(tokens, ""));

  const double val_loss = curves.last("val_loss"), best = curves.best("val_loss");
  if (std::isfinite(val_loss)) {
    page.figures.push_back({"Validation loss", fmt::format("{:.4f}", val_loss),
                            best < val_loss ? fmt::format("nats a token; best {:.4f}", best) : "nats a token"});
    page.figures.push_back({"Perplexity", format_number(std::exp(val_loss)), "on held-out text"});
  }
  if (const double loss = curves.last("loss"); std::isfinite(loss)) {
    page.figures.push_back({"Training loss", fmt::format("{:.4f}", loss), "at the last step"});
  }
  double parameters = number_at(report.measured, "parameters.total");
  if (std::isnan(parameters)) parameters = number_at(report.plan, "parameters.total");
  page.figures.push_back({"Parameters", format_si(parameters, ""), format_count(parameters)});
  page.figures.push_back(
      {"Throughput", format_count(number_at(report.measured, "tokens_per_second")), "tokens a second"});
  if (const double seconds = number_at(report.measured, "seconds"); std::isfinite(seconds)) {
    page.figures.push_back({"Time", format_duration(seconds)});
  }

  LineChart loss{"Loss", {}, curves.x(), {"Nats a token"}, {}, true};
  loss.series.push_back(curves.series("Training", "loss"));
  if (Series held_out = curves.series("Validation", "val_loss"); !held_out.x.empty())
    loss.series.push_back(std::move(held_out));
  LineChart rate = one_line("Learning rate", curves.x(), {"Rate", false, true}, curves.series("Learning rate", "lr"));
  LineChart speed = one_line("Throughput", curves.x(), {"Tokens a second", false, true},
                             curves.series("Tokens a second", "tokens_per_second"));
  Section training{"Training", {}};
  if (curves.thinned()) {
    loss.caption = fmt::format("At most {} points a line are drawn, evenly taken; metrics.jsonl holds all of them.",
                               kMaxLinePoints + 1);
  }
  training.blocks = {std::move(loss), std::move(rate), std::move(speed)};
  page.sections.push_back(std::move(training));
  page.sections.push_back({"Planned beside measured", {planned_beside_measured(report)}});
  if (!report.samples.empty()) page.sections.push_back({"Samples", {Samples{report.samples}}});
  if (!report.spec.is_null()) {
    const std::string text = report.spec.dump(2, ' ', false, Json::error_handler_t::replace);
    page.sections.push_back({"Architecture", {Code{"The full spec", text, true}}});
  }
  page.command = report.command;
  page.machine = report.machine;
  return page;
}

void write_training_report(const std::filesystem::path& path, const TrainingReport& report) {
  write_report(path, training_report_page(report));
}

}  // namespace transept
