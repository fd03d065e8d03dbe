#include "study/study_equality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/format_number.h"
#include "base/hash.h"
#include "base/problem.h"
#include "data/sampler.h"
#include "nn/parameters.h"
#include "plan/plan.h"

namespace transept {
namespace {

// Every token and target of the run, in order.
uint64_t data_order(const TrainConfig& config, const Corpus& corpus, const Vocabulary& vocabulary) {
  const Sampler sampler(corpus.train(), config.context, config.batch, config.seed, config.examples, vocabulary);
  Fnv1a hash;
  for (int64_t i = 0; i < config.schedule.total_steps * config.accumulation; ++i) {
    const Batch batch = sampler.batch(static_cast<uint64_t>(i));
    hash.add_bytes(batch.tokens.data(), batch.tokens.size() * sizeof(batch.tokens[0]));
    hash.add_bytes(batch.targets.data(), batch.targets.size() * sizeof(batch.targets[0]));
  }
  return hash.value();
}

class Checker {
 public:
  Checker(const StudyDefinition& definition, ThreadPool& pool, const Corpus& corpus, const Vocabulary& vocabulary)
      : definition_(definition), pool_(pool), corpus_(corpus), vocabulary_(vocabulary) {
    for (const TrainedModel& m : trained_models(definition))
      models_.push_back({definition.trained_spec(*m.step), definition.trained_config(*m.step), m.axes.dump()});
  }

  Json check() {
    Json facts = Json::array();
    for (const auto& [what, allowed] : definition_.equal) {
      if (models_.empty()) continue;
      const std::string value = what == Equal::kInitialization ? initialization() : numbers(what, allowed);
      facts.push_back({{"what", EnumNames<Equal>::kNames[static_cast<size_t>(what)]},
                       {"among", "models trained from random weights"},
                       {"value", value},
                       {"count", models_.size()}});
    }
    throw_if_any(std::move(problems_));
    return facts;
  }

 private:
  struct Trained {
    ArchSpec spec;
    TrainConfig config;
    std::string axes;
  };

  double number(Equal what, const Trained& m) const {
    const auto plan = [&] { return make_plan(m.spec, {.context = m.config.context}); };
    switch (what) {
      case Equal::kParameters:
        return static_cast<double>(plan().parameters.total);
      case Equal::kFlops:
        return static_cast<double>(plan().flops.train_per_token);
      default:
        return static_cast<double>(m.config.schedule.total_steps * m.config.accumulation * m.config.batch *
                                   m.config.context);
    }
  }

  void differs(const Trained& m, std::string_view what, const std::string& mine, const std::string& first) {
    problems_.push_back(
        {definition_.name + ": " + m.axes,
         fmt::format("has {} {}, where {} has {}", what, mine, models_.front().axes, first),
         "a study changes its axes alone; leave \"" + std::string(what) + "\" out of \"equal\" if it is one"});
  }

  std::string numbers(Equal what, double allowed) {
    const std::string_view name = EnumNames<Equal>::kNames[static_cast<size_t>(what)];
    if (what == Equal::kDataOrder) return order(name);
    const double first = number(what, models_.front());
    double low = first, high = first;
    for (const Trained& m : models_) {
      const double mine = number(what, m);
      low = std::fmin(low, mine), high = std::fmax(high, mine);
      if (std::abs(mine - first) > allowed * first) differs(m, name, format_count(mine), format_count(first));
    }
    return low == high
               ? format_count(first)
               : fmt::format("{} to {}, within {}", format_count(low), format_count(high), format_percent(allowed));
  }

  // Models of one configuration read one sampler, so each configuration is read once a seed.
  std::string order(std::string_view name) {
    std::string shown;
    for (int64_t seed = 0; seed < definition_.seeds; ++seed) {
      std::unordered_map<std::string, std::string> by_config;
      const auto order_of = [&](const Trained& m) {
        TrainConfig config = m.config;
        config.seed = static_cast<uint64_t>(seed);
        std::string& hash = by_config[config_to_json(config).dump()];
        if (hash.empty()) hash = fmt::format("{:016x}", data_order(config, corpus_, vocabulary_));
        return hash;
      };
      const std::string first = order_of(models_.front());
      for (const Trained& m : models_) {
        if (const std::string mine = order_of(m); mine != first) differs(m, name, mine, first);
      }
      shown += (shown.empty() ? "" : ", ") + first;
    }
    return shown;
  }

  // Parameters that models share, by name and shape, must begin with the same bits.
  std::string initialization() {
    std::set<std::string> shared, alone;
    for (int64_t seed = 0; seed < definition_.seeds; ++seed) {
      std::unordered_map<std::string, std::pair<uint64_t, const Trained*>> known;
      for (const Trained& m : models_) {
        Parameters parameters(m.spec);
        parameters.initialize(m.spec, static_cast<uint64_t>(seed), pool_);
        for (const Parameters::Entry& e : parameters.entries()) {
          Fnv1a hash;
          const std::span<const float> values = parameters.values(e);
          hash.add_bytes(values.data(), values.size_bytes());
          const std::string key = e.decl.name + " [" + fmt::format("{}", fmt::join(e.decl.shape, ", ")) + "]";
          const auto [at, fresh] = known.try_emplace(key, hash.value(), &m);
          (fresh && models_.size() > 1 ? alone : shared).insert(key);
          if (!fresh) alone.erase(key);
          if (at->second.first != hash.value())
            differs(m, "initialization", key + " of its own", "another at seed " + std::to_string(seed));
        }
      }
    }
    return fmt::format("{} tensors shared, {} of one model alone", shared.size(), alone.size());
  }

  const StudyDefinition& definition_;
  ThreadPool& pool_;
  const Corpus& corpus_;
  const Vocabulary& vocabulary_;
  std::vector<Trained> models_;
  Problems problems_;
};

}  // namespace

std::vector<TrainedModel> trained_models(const StudyDefinition& definition) {
  std::vector<TrainedModel> models;
  std::unordered_map<std::string, size_t> known;  // by recipe
  // Cells that measure the model itself tell its axes; those that work on it further do so where there are no others.
  for (const bool itself : {true, false}) {
    const size_t named = models.size();
    for (const DefinedCell& cell : definition.cells) {
      if (cell.steps.empty() || (cell.steps.size() == 1) != itself) continue;
      const auto [at, fresh] = known.try_emplace(cell.recipe.front().dump(), models.size());
      if (fresh) {
        models.push_back({&std::get<TrainStep>(cell.steps.front()), cell.axes});
      } else if (at->second >= named) {
        Json& axes = models[at->second].axes;
        Json common = Json::object();
        for (const auto& [name, value] : axes.items()) {
          if (cell.axes.contains(name) && cell.axes[name] == value) common[name] = value;
        }
        axes = common;
      }
    }
  }
  return models;
}

Json check_equality(const StudyDefinition& definition, ThreadPool& pool, const Corpus& corpus,
                    const Vocabulary& vocabulary) {
  return Checker(definition, pool, corpus, vocabulary).check();
}

}  // namespace transept
