// transept scale: compute-optimal sizes by every published scaling law, a law fitted to one's own runs, and when a
// smaller model trained longer is cheaper.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/problem.h"
#include "base/quantity.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "kernels/isa.h"
#include "plan/break_even.h"
#include "plan/scaling_fit.h"
#include "plan/scaling_laws.h"
#include "plan/scaling_runs.h"
#include "study/scaling_report.h"

namespace transept {
namespace {

constexpr const char* kExamples = R"(
Give one of --flops, --params, --tokens and --loss; each set of constants answers with the other two of
FLOPs, parameters and tokens, and with the loss where it predicts one. Numbers are written 7e9, 7B, 1.4T
or 5.76e23.

  transept scale --flops 5.76e23                 what is a budget best spent on?
  transept scale --params 7B                     how many tokens for 7 billion parameters?
  transept scale --flops 1e22 --smaller 3B       when does a 3B model trained longer pay?
  transept scale --flops 1e22 --serve 10T        the cheapest size to serve 10 trillion tokens
  transept scale --fit runs.csv --flops 1e22     a law of one's own runs beside the published ones

FILE of --fit: CSV with a header, JSON lines or a JSON array, with params, loss, and tokens or flops of each run.)";

struct Options {
  std::optional<std::string> flops, params, tokens, smaller, serve;
  std::optional<double> loss;
  std::string fit, set, out;
  int resamples = 200;
  int64_t leave_highest = 5;
  LifetimeCost cost;
};

// What was asked for: one quantity, by its name in the JSON.
struct Given {
  std::string name;
  double value = 0;

  std::string text() const {
    return name == "loss" ? fmt::format("a loss of {:g}", value)
                          : quantity_text(value) + (name == "flops"    ? " FLOPs"
                                                    : name == "params" ? " parameters"
                                                                       : " tokens");
  }
};

double quantity(const std::string& flag, const std::string& text, const QuantityRange& range) {
  const std::optional<double> value = parse_quantity(text);
  if (!value)
    throw InputError(flag, "\"" + text + "\" is not a positive number", "write it as 7e9, 7B, 1.4T or 5.76e23");
  if (!range.holds(*value))
    throw InputError(flag, fmt::format("{} is out of range", text),
                     fmt::format("allowed are {:g} to {:g}", range.low, range.high));
  return *value;
}

std::optional<Given> given_of(const Options& o) {
  std::vector<Given> all;
  if (o.flops) all.push_back({"flops", quantity("--flops", *o.flops, kFlopsRange)});
  if (o.params) all.push_back({"params", quantity("--params", *o.params, kParamsRange)});
  if (o.tokens) all.push_back({"tokens", quantity("--tokens", *o.tokens, kTokensRange)});
  if (o.loss) {
    constexpr double kMostLoss = 100;  // far above that of a model that knows nothing
    if (!(*o.loss > 0 && *o.loss <= kMostLoss))
      throw InputError("--loss", fmt::format("{} is out of range", *o.loss),
                       fmt::format("give nats a token, above 0, at most {}", kMostLoss));
    all.push_back({"loss", *o.loss});
  }
  if (all.size() > 1)
    throw InputError("--" + all[1].name, "stands beside --" + all[0].name,
                     "give one of them; the sets give the others");
  return all.empty() ? std::nullopt : std::optional(all[0]);
}

// What a set has no answer to, and why.
struct Impossible {
  std::string set, why;
};

Json to_json(const std::vector<Impossible>& list) {
  Json document = Json::array();
  for (const Impossible& i : list) document.push_back({{"name", i.set}, {"why", i.why}});
  return document;
}

void refuse_if_none(const std::string& flag, size_t answers, const std::vector<Impossible>& impossible) {
  if (answers > 0) return;
  Problems problems;
  for (const Impossible& i : impossible) problems.push_back({flag, i.set + ": " + i.why, ""});
  throw InputError(std::move(problems));
}

struct Answer {
  Given given;
  std::vector<ScalingReport::Row> rows;
  std::vector<Impossible> no_row;
  std::vector<std::pair<std::string, BreakEven>> break_even;
  std::vector<Impossible> no_break_even;
  std::vector<std::pair<std::string, LifetimeOptimum>> serving;
};

void answer_row(const ScalingLaw& law, Answer& answer) {
  const Given& given = answer.given;
  const Frontier& line = law.frontier;
  if (given.name != "loss") {
    answer.rows.push_back({law, given.name == "flops"    ? line.at_flops(given.value)
                                : given.name == "params" ? line.at_params(given.value)
                                                         : line.at_tokens(given.value)});
    return;
  }
  if (!law.loss) {
    answer.no_row.push_back({law.name, "predicts no loss"});
  } else if (const auto optimum = optimum_at_loss(*law.loss, given.value)) {
    answer.rows.push_back({law, *optimum});
  } else {
    answer.no_row.push_back(
        {law.name, fmt::format("no budget reaches a loss of {:g}: E, the loss of a perfect model, is "
                               "{:.4f}",
                               given.value, law.loss->E)});
  }
}

// Whether --smaller and --serve are answered by this law.
bool chosen(const ScalingLaw& law, const Options& o) {
  return o.set.empty() ? law.loss.has_value() : law.name == o.set;
}

void check_set(const std::vector<ScalingLaw>& laws, const std::string& name) {
  std::string known;
  for (const ScalingLaw& law : laws) {
    if (law.name == name) {
      if (law.loss) return;
      throw InputError("--set", name + " predicts no loss", "its compute-optimal line is shown without being chosen");
    }
    if (law.loss) known += (known.empty() ? "" : ", ") + law.name;
  }
  throw InputError("--set", "\"" + name + "\" is unknown", "known are " + known);
}

void check_cost(const Options& o) {
  const auto fraction = [](const char* flag, double value) {
    if (!(value >= 1e-3 && value <= 1))
      throw InputError(flag, fmt::format("{} is out of range", value), "allowed are 0.001 to 1");
  };
  fraction("--train-mfu", o.cost.train_mfu);
  fraction("--serve-mfu", o.cost.serve_mfu);
  if (!(o.cost.price_ratio >= 1e-3 && o.cost.price_ratio <= 1e3))
    throw InputError("--price-ratio", fmt::format("{} is out of range", o.cost.price_ratio),
                     "allowed are 0.001 to 1000");
  const LifetimeCost plain;
  const bool unused = !o.smaller && !o.serve && o.out.empty();
  if (unused && (o.cost.train_mfu != plain.train_mfu || o.cost.serve_mfu != plain.serve_mfu ||
                 o.cost.price_ratio != plain.price_ratio))
    throw InputError("--train-mfu, --serve-mfu, --price-ratio", "weigh training against serving",
                     "give --smaller or --serve too, or leave them out");
}

void print_rows(const Answer& answer) {
  fmt::print("Compute-optimal for {}\n\n  {:<18}{:>11}{:>11}{:>14}{:>12}{:>9}{:>10}\n", answer.given.text(), "set",
             "params", "tokens", "tokens/param", "FLOPs", "loss", "a");
  for (const auto& [law, o] : answer.rows) {
    fmt::print("  {:<18}{:>11}{:>11}{:>14.1f}{:>12.3g}{:>9}{:>10.3f}{}\n", law.name, quantity_text(o.params),
               quantity_text(o.tokens), o.tokens_per_param(), o.flops,
               law.loss ? fmt::format("{:.4f}", law.loss->loss(o.params, o.tokens)) : "", law.frontier.a(),
               law.exponent_error ? fmt::format(" ± {:.3f}", *law.exponent_error) : "");
  }
  for (const Impossible& i : answer.no_row) fmt::print("  {:<18}{}\n", i.set, i.why);
  fmt::print("\n  FLOPs are 6 params tokens; params grow with FLOPs^a\n");
}

void print_sources(const Answer& answer) {
  fmt::print("\nSources and notes\n\n");
  for (const auto& row : answer.rows)
    fmt::print("  {:<18}{}{}\n", row.law.name, row.law.source, row.law.note.empty() ? "" : "; " + row.law.note);
}

void print_fit(const ScalingFit& fit, const std::vector<ScalingRun>& runs, const std::string& file) {
  fmt::print("\nFit of {} runs in {}: loss = E + A / params^alpha + B / tokens^beta\n\n", runs.size(), file);
  fmt::print("  {:<18}{:>12}{:>12}{:>24}{:>16}{:>18}\n", "", "value", "error", "5 % to 95 %",
             fit.without_highest ? fmt::format("less {} highest", fit.without_highest->count) : "",
             fit.leave_one_out ? "less one run" : "");
  for (size_t k = 0; k < kFitFigures.size(); ++k) {
    fmt::print("  {:<18}{:>12.5g}", kFitFigures[k], fit.figures[k]);
    if (fit.bootstrap) {
      const ScalingFit::Bootstrap& b = *fit.bootstrap;
      fmt::print("{:>12.3g}{:>24}", b.error[k], fmt::format("{:.4g} to {:.4g}", b.low[k], b.high[k]));
    } else {
      fmt::print("{:>36}", "");
    }
    fmt::print("{:>16}", fit.without_highest ? fmt::format("{:.5g}", fit.without_highest->figures[k]) : "");
    fmt::print("{:>18}\n", fit.leave_one_out ? fmt::format("{:+.3g}", fit.leave_one_out->change[k]) : "");
  }
  fmt::print("\n  tokens_per_param stands at {:.3g} FLOPs", fit.flops);
  if (fit.bootstrap) fmt::print("; errors over {} resamples", fit.bootstrap->resamples);
  if (fit.leave_one_out)
    fmt::print("; less one run: the largest change that one of {} makes", fit.leave_one_out->tried);
  fmt::print("\n");
  for (const std::string& warning : fit.warnings) fmt::print("  warning: {}\n", warning);
}

void print_break_even(const Answer& answer, const Options& o) {
  fmt::print("\n{} parameters trained longer, at equal predicted loss\n\n  {:<18}{:>10}{:>14}{:>13}{:>16}{:>24}\n",
             *o.smaller, "set", "instead of", "tokens", "tokens/param", "training FLOPs", "cheaper when serving");
  for (const auto& [name, b] : answer.break_even) {
    fmt::print("  {:<18}{:>10}{:>14}{:>13.1f}{:>15.2f}x{:>24}\n", name, quantity_text(b.optimal.params),
               quantity_text(b.smaller.tokens), b.smaller.tokens_per_param(), b.smaller.flops / b.optimal.flops,
               quantity_text(b.served_tokens) + " or more");
  }
  for (const Impossible& i : answer.no_break_even) fmt::print("  {:<18}{}\n", i.set, i.why);
}

void print_serving(const Answer& answer, const Options& o) {
  fmt::print(
      "\nCheapest model of the same predicted loss that serves {} tokens\n\n  {:<18}{:>10}{:>14}{:>14}{:>16}{:>10}\n",
      *o.serve, "set", "params", "tokens", "tokens/param", "training FLOPs", "saves");
  for (const auto& [name, s] : answer.serving) {
    fmt::print("  {:<18}{:>10}{:>14}{:>14.1f}{:>16.3g}{:>8.1f} %\n", name, quantity_text(s.model.params),
               quantity_text(s.model.tokens), s.model.tokens_per_param(), s.model.flops, 100 * s.saving);
  }
}

Json to_json(const Answer& answer, const Options& o, const std::optional<ScalingFit>& fit) {
  Json document{{"given", {{answer.given.name, answer.given.value}}}, {"fits", Json::array()}};
  for (const auto& [law, optimum] : answer.rows) document["fits"].push_back(to_json(law, optimum));
  if (!answer.no_row.empty()) document["impossible"] = to_json(answer.no_row);
  if (fit) document["fit"] = to_json(*fit);
  const auto named = [](const auto& list) {
    Json array = Json::array();
    for (const auto& [name, result] : list) {
      Json entry{{"name", name}};
      entry.update(to_json(result));
      array.push_back(std::move(entry));
    }
    return array;
  };
  if (o.smaller) {
    document["break_even"] = named(answer.break_even);
    for (const Impossible& i : answer.no_break_even)
      document["break_even"].push_back({{"name", i.set}, {"impossible", i.why}});
  }
  if (o.serve) document["serving"] = named(answer.serving);
  return document;
}

int scale(const Options& o, const Globals& globals) {
  check_cost(o);
  std::optional<Given> given = given_of(o);
  if (!given && o.fit.empty())
    throw InputError("scale", "needs one of --flops, --params, --tokens, --loss and --fit", "see --help");
  std::optional<double> smaller, served;
  if (o.smaller) smaller = quantity("--smaller", *o.smaller, kParamsRange);
  if (o.serve) served = quantity("--serve", *o.serve, kTokensRange);

  std::vector<ScalingLaw> laws = published_laws();
  std::vector<ScalingRun> runs;
  std::optional<ScalingFit> fit;
  if (!o.fit.empty()) {
    runs = read_runs(o.fit);
    ThreadPool pool = globals.pool();
    fit = fit_scaling_law(runs,
                          {.seed = globals.seed,
                           .resamples = o.resamples,
                           .leave_highest = static_cast<size_t>(o.leave_highest),
                           .flops = given && given->name == "flops" ? given->value : 0},
                          pool, o.fit);
    laws.push_back(law_of(*fit, fmt::format("{} runs of {}", runs.size(), o.fit)));
  }
  if (!o.set.empty()) check_set(laws, o.set);

  Answer answer;
  answer.given = given ? *given : Given{"flops", fit->flops};
  for (const ScalingLaw& law : laws) answer_row(law, answer);
  refuse_if_none("--loss", answer.rows.size(), answer.no_row);
  for (const auto& [law, optimum] : answer.rows) {
    if (!chosen(law, o)) continue;
    if (served) answer.serving.emplace_back(law.name, lifetime_optimum(*law.loss, optimum, *served, o.cost));
    if (!smaller) continue;
    try {
      answer.break_even.emplace_back(law.name, break_even(*law.loss, optimum, *smaller, o.cost, "--smaller"));
    } catch (const InputError& e) {
      answer.no_break_even.push_back({law.name, e.problems()[0].what + "; " + e.problems()[0].mend});
    }
  }
  if (smaller) refuse_if_none("--smaller", answer.break_even.size(), answer.no_break_even);

  if (!o.out.empty()) {
    const std::string preferred = !o.set.empty() ? o.set : fit ? "fit" : "besiroglu";
    const auto answered = std::find_if(answer.rows.begin(), answer.rows.end(),
                                       [&](const auto& row) { return row.law.name == preferred; });
    if (answered == answer.rows.end())
      throw InputError("--loss", preferred + " has no answer, and the page shows its curves",
                       "choose another by --set, or give another loss");
    write_scaling_report(o.out, {.given = answer.given.text(),
                                 .rows = answer.rows,
                                 .set = preferred,
                                 .smaller = smaller,
                                 .served_tokens = served,
                                 .cost = o.cost,
                                 .fit = fit,
                                 .runs = runs,
                                 .runs_name = o.fit,
                                 .command = globals.command_line,
                                 .machine = this_machine(instruction_set_name(), build_commit())});
  }
  if (globals.json) {
    print_json(to_json(answer, o, fit));
    return 0;
  }
  print_rows(answer);
  if (fit) print_fit(*fit, runs, o.fit);
  if (smaller) print_break_even(answer, o);
  if (served) print_serving(answer, o);
  print_sources(answer);
  if (!o.out.empty()) fmt::print("\npage: {}\n", o.out);
  return 0;
}

}  // namespace

void register_scale(Registry& registry) {
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("scale", "compute-optimal sizes by every published scaling law; fits; over-training",
                               [o, &globals] { return scale(*o, globals); });
  sub->footer(kExamples);
  sub->add_option("--flops", o->flops, "training budget");
  sub->add_option("--params", o->params, "parameters of a compute-optimal model");
  sub->add_option("--tokens", o->tokens, "training tokens of a compute-optimal model");
  sub->add_option("--loss", o->loss, "predicted loss of a compute-optimal model, nats a token");
  sub->add_option("--smaller", o->smaller, "parameters of a smaller model: when is it, trained longer, cheaper?");
  sub->add_option("--serve", o->serve, "tokens to be served: which size is cheapest over its life?");
  sub->add_option("--train-mfu", o->cost.train_mfu, "utilization in training")->capture_default_str();
  sub->add_option("--serve-mfu", o->cost.serve_mfu, "utilization in serving")->capture_default_str();
  sub->add_option("--price-ratio", o->cost.price_ratio, "an hour of serving over one of training")
      ->capture_default_str();
  sub->add_option("--fit", o->fit, "file of runs to fit a law to");
  sub->add_option("--bootstrap", o->resamples, "resamples for the errors of the fit; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000));
  sub->add_option("--leave-highest", o->leave_highest, "highest losses that a second fit leaves out")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000));
  sub->add_option("--set", o->set,
                  "the one set for --smaller, --serve and the page's curves (default: each; the page: "
                  "the fit, or besiroglu)");
  sub->add_option("--out", o->out, "write a page with curves and tables to this file");
}

}  // namespace transept
