// Checks what was asked, puts the parts together, and prints them.
#include "plan/economics.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format_number.h"
#include "base/problem.h"
#include "plan/text_table.h"

namespace transept {
namespace {

constexpr int64_t kMostMachines = 10000000, kMostTensorParallel = 4096;
constexpr int64_t kMostTokens = int64_t{1} << 60;
constexpr double kLeastAmount = 1e-6, kMostAmount = 1e15;  // machine-hours, tokens a second
constexpr double kLeastMfu = 1e-6;

void check(const EconomicsOptions& o) {
  Problems problems;
  const auto whole = [&](const char* flag, int64_t value, int64_t low, int64_t high) {
    if (value < low || value > high)
      problems.push_back({flag, fmt::format("got {}", value), fmt::format("allowed: {} to {}", low, high)});
  };
  const auto amount = [&](const char* flag, double value, double low, double high) {
    if (!(value >= low && value <= high))
      problems.push_back({flag, fmt::format("got {}", value), fmt::format("allowed: {} to {}", low, high)});
  };
  whole("--machines", o.machines, 1, kMostMachines);
  whole("--serve-tensor-parallel", o.tensor_parallel, 1, kMostTensorParallel);
  whole("--train-tokens", o.train_tokens, 0, kMostTokens);
  amount("--mfu", o.mfu, kLeastMfu, 1);
  if (o.machine_hours) amount("--machine-hours", *o.machine_hours, kLeastAmount, kMostAmount);
  if (o.tokens_per_second) amount("--tokens-per-second", *o.tokens_per_second, kLeastAmount, kMostAmount);
  throw_if_any(std::move(problems));
}

Json pass_json(const PassTime& pass) {
  return {{"flops", pass.flops},
          {"bytes", pass.bytes},
          {"compute_seconds", pass.compute_seconds},
          {"memory_seconds", pass.memory_seconds},
          {"communication_seconds", pass.communication_seconds},
          {"layer_seconds", pass.layer_seconds},
          {"seconds", pass.seconds},
          {"binds", pass.compute_binds() ? "compute" : "memory"}};
}

void add_price(Json& json, const char* key, double value) {
  if (value > 0) json[key] = value;
}

Json decode_json(const Decode& decode) {
  Json json = {{"context", decode.context}, {"batch", decode.batch}};
  json.update(pass_json(decode.step));
  json["tokens_per_second"] = decode.tokens_per_second;
  json["tokens_per_second_per_sequence"] = decode.tokens_per_second_per_sequence;
  add_price(json, "usd_per_million_tokens", decode.usd_per_million_tokens);
  return json;
}

std::string pass_note(const PassTime& pass) {
  return fmt::format("{} binds: operations {}, bytes {}", pass.compute_binds() ? "compute" : "memory",
                     seconds(pass.compute_seconds), seconds(pass.memory_seconds));
}

void price_row(TextTable& t, const std::string& label, double value) {
  t.row(label, value > 0 ? usd(value) : "no price known");
}

std::string rate(double tokens_per_second) {
  return tokens_per_second < 100 ? fmt::format("{:.2f}", tokens_per_second) : format_count(tokens_per_second);
}

}  // namespace

Economics make_economics(const ArchSpec& spec, const PlanOptions& plan_options, const EconomicsOptions& options) {
  check(options);
  const Plan plan = make_plan(spec, plan_options);
  Economics e{.machine = options.machine,
              .training_peak = options.machine.training_peak(),
              .flop_count = options.flop_count,
              .run = {.tokens = options.train_tokens > 0 ? options.train_tokens : plan.chinchilla.tokens,
                      .machines = options.machines},
              .training = {},
              .serving = plan_serving(spec, plan_options, options.machine, options.tensor_parallel)};
  e.run.flops_per_token = train_flops_per_token(plan.flops, options.flop_count);
  e.mfu = options.mfu;
  if (options.machine_hours) {
    e.mfu = mfu_of_machine_hours(e.run, e.machine, *options.machine_hours);
  } else if (options.tokens_per_second) {
    e.mfu = mfu_of_tokens_per_second(e.run, e.machine, *options.tokens_per_second);
  }
  if (!(e.mfu <= 1))
    throw InputError(options.machine_hours ? "--machine-hours" : "--tokens-per-second",
                     fmt::format("means an MFU of {:.4g}", e.mfu), "no machine does more than its peak: an MFU of 1");
  for (size_t i = 0; i < e.mfu_by_count.size(); ++i)
    e.mfu_by_count[i] = e.mfu * train_flops_per_token(plan.flops, static_cast<FlopCount>(i)) / e.run.flops_per_token;
  e.training = training_cost(e.run, e.machine, e.mfu);
  return e;
}

Json to_json(const Economics& e) {
  Json training = {{"tokens", e.run.tokens},
                   {"machines", e.run.machines},
                   {"dtype", e.training_peak.dtype},
                   {"peak_flops_per_second", e.training_peak.flops_per_second},
                   {"flop_count", kFlopCountNames[static_cast<size_t>(e.flop_count)]},
                   {"flops_per_token", e.run.flops_per_token},
                   {"flops", e.training.flops},
                   {"mfu", e.mfu},
                   {"mfu_by_count", Json::object()},
                   {"machine_hours", e.training.machine_hours},
                   {"hours", e.training.hours},
                   {"tokens_per_second", e.training.tokens_per_second}};
  for (size_t i = 0; i < e.mfu_by_count.size(); ++i)
    training["mfu_by_count"][std::string(kFlopCountNames[i])] = e.mfu_by_count[i];
  add_price(training, "usd", e.training.usd);
  add_price(training, "kilowatt_hours", e.training.kilowatt_hours);
  const Serving& s = e.serving;
  Json prefill = {{"tokens", s.prefill.tokens}, {"batch", s.prefill.batch}};
  prefill.update(pass_json(s.prefill.pass));
  prefill["tokens_per_second"] = s.prefill.tokens_per_second;
  prefill["seconds_to_first_token"] = s.prefill.seconds_to_first_token;
  add_price(prefill, "usd_per_million_tokens", s.prefill.usd_per_million_tokens);
  Json json = {{"machine", to_json(e.machine)},
               {"training", training},
               {"serving",
                {{"tensor_parallel", s.machines},
                 {"dtype", s.peak.dtype},
                 {"peak_flops_per_second", s.peak.flops_per_second},
                 {"memory_bytes", s.memory_bytes}}},
               {"prefill", prefill}};
  if (s.decode) {
    json["decode"] = decode_json(*s.decode);
    json["decode"]["compute_bound_batch"] = s.compute_bound_batch ? Json(*s.compute_bound_batch) : Json(nullptr);
    json["decode"]["largest_batch"] = s.largest_batch;
    if (s.largest) json["decode"]["at_largest_batch"] = decode_json(*s.largest);
  }
  return json;
}

std::string to_text(const Economics& e) {
  TextTable t;
  const MachineType& m = e.machine;
  t.heading(fmt::format("Training on {} of {}{}", format_count(static_cast<double>(e.run.machines)), m.name,
                        m.description.empty() ? "" : " (" + m.description + ")"));
  t.row("tokens", format_count(static_cast<double>(e.run.tokens)));
  t.row("FLOPs a token", format_si(e.run.flops_per_token, "FLOP"),
        fmt::format("counted: {}", kFlopCountNames[static_cast<size_t>(e.flop_count)]));
  t.row("peak", format_si(e.training_peak.flops_per_second, "FLOP/s"),
        e.training_peak.dtype + ", dense, of each machine");
  t.row("MFU", fmt::format("{:.1f} %", 100 * e.mfu),
        fmt::format("linear {:.1f} %, causal {:.1f} %, unmasked {:.1f} %", 100 * e.mfu_by_count[0],
                    100 * e.mfu_by_count[1], 100 * e.mfu_by_count[2]));
  t.row("machine-hours", fmt::format("{:.4g}", e.training.machine_hours));
  t.row("time", seconds(3600 * e.training.hours), rate(e.training.tokens_per_second) + " tokens/s");
  price_row(t, "cost", e.training.usd);
  if (e.training.kilowatt_hours > 0) t.row("energy", fmt::format("{:.4g} kWh", e.training.kilowatt_hours));

  const Serving& s = e.serving;
  t.heading(fmt::format("Serving on {} of {}, {} peak {}: the roofline, a bound", s.machines, m.name, s.peak.dtype,
                        format_si(s.peak.flops_per_second, "FLOP/s")));
  t.row(fmt::format("prompt of {}, batch {}", format_count(static_cast<double>(s.prefill.tokens)), s.prefill.batch),
        rate(s.prefill.tokens_per_second) + " tokens/s", pass_note(s.prefill.pass));
  t.row("to the first token", seconds(s.prefill.seconds_to_first_token));
  price_row(t, "a million prompt tokens", s.prefill.usd_per_million_tokens);
  if (!s.decode) return t.take();
  t.row(fmt::format("decode at {}, batch {}", format_count(static_cast<double>(s.decode->context)), s.decode->batch),
        rate(s.decode->tokens_per_second) + " tokens/s", pass_note(s.decode->step));
  t.row("each sequence", rate(s.decode->tokens_per_second_per_sequence) + " tokens/s");
  price_row(t, "a million decoded tokens", s.decode->usd_per_million_tokens);
  t.row("compute binds from batch",
        s.compute_bound_batch ? format_count(static_cast<double>(*s.compute_bound_batch)) : "never",
        s.compute_bound_batch ? "" : "reading the caches takes longer at every batch");
  t.row("largest batch that fits", format_count(static_cast<double>(s.largest_batch)),
        "in " + format_bytes(static_cast<double>(s.memory_bytes)));
  if (s.largest) {
    t.row("decode at that batch", rate(s.largest->tokens_per_second) + " tokens/s", pass_note(s.largest->step));
    price_row(t, "a million decoded tokens", s.largest->usd_per_million_tokens);
  }
  return t.take();
}

}  // namespace transept
