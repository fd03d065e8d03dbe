// transept synth: writes synthetic text, for machines without a corpus.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "cli/command.h"
#include "data/synthetic.h"

namespace transept {

void register_synth(Registry& registry) {
  struct Options {
    int64_t bytes = 5000000;
    std::string out;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("synth", "write synthetic text to train on", [o, &globals] {
    constexpr int64_t kMost = int64_t{1} << 32;
    if (o->bytes < 1 || o->bytes > kMost)
      throw InputError("--bytes", fmt::format("{} is out of range", o->bytes),
                       fmt::format("allowed are 1 to {}", kMost));
    write_file_atomic(o->out, synthetic_text(static_cast<uint64_t>(o->bytes), globals.seed));
    if (globals.json) {
      print_json({{"out", o->out}, {"bytes", o->bytes}});
    } else {
      fmt::print("{}: {} bytes of synthetic text\n", o->out, o->bytes);
    }
    return 0;
  });
  sub->add_option("--bytes", o->bytes, "length of the text")->capture_default_str();
  sub->add_option("--out", o->out, "file to write")->required();
}

}  // namespace transept
