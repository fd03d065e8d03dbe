#include "cli/machine_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/problem.h"
#include "cli/command.h"

namespace transept {
namespace {

constexpr double kLeastUsdPerHour = 1e-6, kMostUsdPerHour = 1e6;

// "2e12" as well as "2000000000000": whole numbers of this size are written both ways.
int64_t whole_tokens(double tokens) {
  if (!(tokens >= 1 && tokens <= 1e18))
    throw InputError("--train-tokens", fmt::format("got {}", tokens), "allowed: 1 to 1e18");
  return static_cast<int64_t>(std::llround(tokens));
}

}  // namespace

EconomicsOf add_machine_options(CLI::App& sub) {
  struct Options {
    EconomicsOptions economics;
    std::string machine, flop_count;
    std::optional<double> train_tokens, mfu, machine_hours, tokens_per_second, usd_per_hour;
    std::vector<CLI::Option*> dependent;  // on --machine
  };
  auto o = std::make_shared<Options>();
  sub.add_option("--machine", o->machine,
                 "what training and serving cost on this: a name of `transept machines`, FILE.json or FILE.json:NAME");
  const auto add = [&](const char* name, auto& value, const std::string& description) {
    CLI::Option* option = sub.add_option(name, value, description);
    o->dependent.push_back(option);
    return option;
  };
  add("--machines", o->economics.machines, "machines that train")->check(at_least_one());
  add("--train-tokens", o->train_tokens, "tokens to train on (default: 20 a parameter)");
  CLI::Option* mfu =
      add("--mfu", o->mfu, fmt::format("share of the machines' peak that training reaches (default: {})", kTypicalMfu));
  CLI::Option* hours =
      add("--machine-hours", o->machine_hours, "that a training took on all machines together: gives its MFU");
  CLI::Option* speed = add("--tokens-per-second", o->tokens_per_second,
                           "that a training reaches on all machines together: gives its MFU");
  mfu->excludes(hours)->excludes(speed);
  hours->excludes(speed);
  o->flop_count = kFlopCountNames[static_cast<size_t>(o->economics.flop_count)];
  add("--flop-count", o->flop_count,
      "FLOPs that MFU is of: linear, 6 x matrices; causal, and attention over the keys seen; unmasked, and attention "
      "over "
      "the whole context")
      ->capture_default_str()
      ->check(CLI::IsMember(std::vector<std::string>(kFlopCountNames.begin(), kFlopCountNames.end())));
  add("--serve-tensor-parallel", o->economics.tensor_parallel, "machines that hold one model when it serves")
      ->check(at_least_one());
  add("--price-per-hour", o->usd_per_hour, "of one machine, in USD, in place of the table's");
  return [o](const ArchSpec& spec, const PlanOptions& plan) -> std::optional<Economics> {
    if (o->machine.empty()) {
      for (const CLI::Option* option : o->dependent) {
        if (option->count() > 0) throw InputError(option->get_name(), "means nothing without --machine", "add it");
      }
      return std::nullopt;
    }
    EconomicsOptions options = o->economics;
    options.machine = find_machine_type(o->machine);
    if (o->usd_per_hour) {
      if (!(*o->usd_per_hour >= kLeastUsdPerHour && *o->usd_per_hour <= kMostUsdPerHour))
        throw InputError("--price-per-hour", fmt::format("got {}", *o->usd_per_hour),
                         fmt::format("allowed: {} to {}", kLeastUsdPerHour, kMostUsdPerHour));
      options.machine.usd_per_hour = *o->usd_per_hour;
    }
    if (o->train_tokens) options.train_tokens = whole_tokens(*o->train_tokens);
    options.flop_count = static_cast<FlopCount>(
        std::find(kFlopCountNames.begin(), kFlopCountNames.end(), o->flop_count) - kFlopCountNames.begin());
    options.mfu = o->mfu.value_or(options.mfu);
    options.machine_hours = o->machine_hours;
    options.tokens_per_second = o->tokens_per_second;
    return make_economics(spec, plan, options);
  };
}

}  // namespace transept
