// transept spec: prints any model as a full spec, the numbers of its positions, or the JSON Schema of specs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"

namespace transept {
namespace {

struct PositionAsked {
  const ArchSpec& spec;
  int64_t heads, head_dim;
  bool causal;
  int64_t length;
};

Json numbers_of(const NoPosition&, const PositionAsked&) { return Json::object(); }

Json numbers_of(const LearnedPosition&, const PositionAsked& asked) {
  return {{"rows", asked.spec.max_position_embeddings}};
}

Json numbers_of(const SinusoidalPosition& kind, const PositionAsked& asked) {
  return {{"theta", kind.theta},
          {"pairing", EnumNames<RopePairing>::kNames[static_cast<size_t>(kind.pairing)]},
          {"inverse_frequencies", kind.inv_freq(asked.spec.hidden_size)}};
}

Json numbers_of(const RopePosition& kind, const PositionAsked& asked) {
  const RopeAngles angles = kind.angles(asked.head_dim, asked.length, asked.spec.max_position_embeddings);
  return {{"theta", kind.theta},
          {"scaling", kind_name(kind.scaling)},
          {"length", asked.length},
          {"pairing", EnumNames<RopePairing>::kNames[static_cast<size_t>(kind.pairing)]},
          {"head_dim", asked.head_dim},
          {"rotated", kind.rotated(asked.head_dim)},
          {"amplitude", angles.amplitude},
          {"score_factor", angles.score_factor},
          {"inverse_frequencies", angles.inv_freq}};
}

Json numbers_of(const AlibiPosition& kind, const PositionAsked& asked) {
  return {{"slopes", kind.slopes(asked.heads)}};
}

// Runs of distances that share a bucket. Distances are the query's position less the key's; the outermost runs have no
// end, which null says.
Json buckets_of(const T5Position& kind, bool causal) {
  Json runs = Json::array();
  const int64_t furthest = kind.max_distance;
  for (int64_t from = causal ? 0 : -furthest; from <= furthest;) {
    const int64_t bucket = kind.bucket(from, causal);
    int64_t to = from, beyond = furthest + 1;  // the run's last distance lies in [to, beyond)
    while (beyond - to > 1) {
      const int64_t middle = to + (beyond - to) / 2;
      (kind.bucket(middle, causal) == bucket ? to : beyond) = middle;
    }
    runs.push_back({{"bucket", bucket}, {"from", from}, {"to", to}});
    from = to + 1;
  }
  if (!causal) runs.front()["from"] = nullptr;
  runs.back()["to"] = nullptr;
  return runs;
}

Json numbers_of(const T5Position& kind, const PositionAsked& asked) {
  return {{"causal", asked.causal}, {"buckets", buckets_of(kind, asked.causal)}};
}

// What of a layer the kind's numbers hang on; layers with the same value have the same numbers.
struct LooksAt {
  int64_t heads, head_dim;
  int64_t operator()(const RopePosition&) const { return head_dim; }
  int64_t operator()(const AlibiPosition&) const { return heads; }
  int64_t operator()(const auto&) const { return 0; }
};

constexpr int64_t kListed = int64_t{1} << 20;  // frequencies and slopes printed at most

// One entry for each form of layer of a stack, as far as positions look at it, in order of appearance.
void report_stack(const ArchSpec& spec, const StackSpec& stack, const char* name, int64_t length, Json& report) {
  std::vector<std::pair<PositionSpec, int64_t>> forms;
  const size_t first = report.size();
  int64_t listed = 0;
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const LayerSpec& layer = stack.layers[i];
    const LooksAt looks =
        std::visit([](const auto& a) { return LooksAt{a.num_attention_heads, a.rotary_dim()}; }, layer.attention);
    const std::pair form(layer.position, std::visit(looks, layer.position));
    const size_t at = static_cast<size_t>(std::find(forms.begin(), forms.end(), form) - forms.begin());
    if (at == forms.size()) {
      forms.push_back(form);
      listed += form.second;
      if (listed > kListed)
        throw InputError("--positions", fmt::format("layers of this model have more than {} numbers", kListed),
                         "ask it of a model with smaller heads");
      Json entry = {{"stack", name}, {"layers", Json::array()}, {"kind", kind_name(layer.position)}};
      const PositionAsked asked{spec, looks.heads, looks.head_dim, layer.causal, length};
      entry.update(std::visit([&](const auto& kind) { return numbers_of(kind, asked); }, layer.position));
      report.push_back(std::move(entry));
    }
    report[first + at]["layers"].push_back(i);
  }
}

Json position_report(const ArchSpec& spec, int64_t length) {
  Json report = Json::array();
  report_stack(spec, spec.encoder, "encoder", length, report);
  report_stack(spec, spec, spec.topology == Topology::kEncoder ? "encoder" : "decoder", length, report);
  return report;
}

std::string bound(const Json& distance, const char* open) { return distance.is_null() ? open : distance.dump(); }

// Layers as runs: "0-4, 6".
std::string runs_of(const Json& layers) {
  std::string text;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last].get<size_t>() + 1) ++last;
    text += (text.empty() ? "" : ", ") + layers[i].dump() + (last > i ? "-" + layers[last].dump() : "");
    i = last + 1;
  }
  return text;
}

std::string to_text(const Json& report) {
  std::string text;
  for (const Json& entry : report) {
    text += fmt::format("{} layers {}\n", entry["stack"].get<std::string>(), runs_of(entry["layers"]));
    for (const auto& [key, value] : entry.items()) {
      if (key == "layers" || key == "stack") continue;
      if (!value.is_array()) {
        text += fmt::format("  {:<22}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
        continue;
      }
      text += fmt::format("  {}\n", key);
      for (size_t i = 0; i < value.size(); ++i) {
        if (value[i].is_object()) {
          text += fmt::format("    bucket {:>5}  distances {} to {}\n", value[i]["bucket"].get<int64_t>(),
                              bound(value[i]["from"], "-inf"), bound(value[i]["to"], "inf"));
        } else {
          text += fmt::format("    {:>5}  {:.9g}\n", i, value[i].get<double>());
        }
      }
    }
  }
  return text;
}

}  // namespace

void register_spec(Registry& registry) {
  struct Options {
    std::string model;
    bool schema = false;
    bool positions = false;
    int64_t length = 0;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("spec", "print any model as a full spec, checked", [o, &globals] {
    if (o->schema) {
      print_json(spec_schema());
      return 0;
    }
    if (o->model.empty())
      throw InputError("MODEL", "is missing", "give a preset, a spec file or a model folder, or --schema");
    const ArchSpec spec = resolve_spec(o->model);
    if (!o->positions) {
      print_json(spec_to_json(spec));
      return 0;
    }
    const Json report = position_report(spec, o->length > 0 ? o->length : spec.max_position_embeddings);
    if (globals.json) {
      print_json({{"positions", report}});
    } else {
      fmt::print("{}", to_text(report));
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, "preset, spec file or model folder");
  sub->add_flag("--schema", o->schema, "print the JSON Schema of spec documents");
  CLI::Option* positions =
      sub->add_flag("--positions", o->positions, "print inverse frequencies, amplitudes, slopes and buckets by layer");
  sub->add_option(
         "--length", o->length,
         "with --positions: tokens of the sequence, for rules that look at them (default: the model's longest)")
      ->check(at_least_one())
      ->needs(positions);
}

}  // namespace transept
