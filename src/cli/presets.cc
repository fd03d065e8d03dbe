// transept presets: lists the specs that are part of the program.
#include "spec/presets.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "plan/plan.h"

namespace transept {

void register_presets(Registry& registry) {
  Globals& globals = registry.globals;
  registry.add("presets", "list the presets", [&globals] {
    Json list = Json::array();
    for (const std::string& name : preset_names()) {
      const ArchSpec spec = preset(name);
      list.push_back({{"name", name},
                      {"description", spec.description},
                      {"parameters", make_plan(spec, {}).parameters.total},
                      {"layers", spec.encoder.layers.size() + spec.layers.size()},
                      {"hidden_size", spec.hidden_size},
                      {"vocab_size", spec.vocab_size},
                      {"max_position_embeddings", spec.max_position_embeddings}});
    }
    if (globals.json) {
      print_json(list);
      return 0;
    }
    fmt::print("{:<18} {:>15} {:>6} {:>6} {:>7} {:>8}  {}\n", "preset", "parameters", "layers", "width", "vocab",
               "context", "");
    for (const Json& p : list) {
      fmt::print("{:<18} {:>15} {:>6} {:>6} {:>7} {:>8}  {}\n", p.at("name").get<std::string>(),
                 p.at("parameters").get<int64_t>(), p.at("layers").get<int64_t>(), p.at("hidden_size").get<int64_t>(),
                 p.at("vocab_size").get<int64_t>(), p.at("max_position_embeddings").get<int64_t>(),
                 p.at("description").get<std::string>());
    }
    return 0;
  });
}

}  // namespace transept
