// transept spec: prints any model as a full spec, or the JSON Schema of specs.
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"

namespace transept {

void register_spec(Registry& registry) {
  struct Options {
    std::string model;
    bool schema = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* sub = registry.add("spec", "print any model as a full spec, checked", [o] {
    if (o->schema) {
      print_json(spec_schema());
      return 0;
    }
    if (o->model.empty())
      throw InputError("MODEL", "is missing", "give a preset, a spec file or a model folder, or --schema");
    print_json(spec_to_json(resolve_spec(o->model)));
    return 0;
  });
  sub->add_option("MODEL", o->model, "preset, spec file or model folder");
  sub->add_flag("--schema", o->schema, "print the JSON Schema of spec documents");
}

}  // namespace transept
