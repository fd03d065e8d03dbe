// transept synth: writes synthetic text or pairs, for machines without a corpus.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "cli/command.h"
#include "data/synthetic.h"

namespace transept {

void register_synth(Registry& registry) {
  struct Options {
    int64_t bytes = 5000000, lines = 10000, min_length = 1, max_length = 12;
    std::string out, task;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("synth", "write synthetic text, or pairs, to train on", [o, &globals] {
    constexpr int64_t kMost = int64_t{1} << 32, kLongest = 4096;
    const auto check = [](const char* flag, int64_t value, int64_t low, int64_t high) {
      if (value < low || value > high)
        throw InputError(flag, fmt::format("{} is out of range", value),
                         fmt::format("allowed are {} to {}", low, high));
    };
    if (!o->task.empty()) {
      check("--min-length", o->min_length, 1, kLongest);
      check("--max-length", o->max_length, o->min_length, kLongest);
      check("--lines", o->lines, 1, kMost / (2 * o->max_length + 2));
      if (std::filesystem::path(o->out).extension() != ".tsv")
        throw InputError("--out", o->out + " does not end in .tsv, by which pairs are known", "name it so");
      const PairTask task = o->task == "copy" ? PairTask::kCopy : PairTask::kReverse;
      write_file_atomic(o->out, synthetic_pairs(task, o->lines, o->min_length, o->max_length, globals.seed));
      if (globals.json) {
        print_json({{"out", o->out}, {"lines", o->lines}});
      } else {
        fmt::print("{}: {} pairs\n", o->out, o->lines);
      }
      return 0;
    }
    check("--bytes", o->bytes, 1, kMost);
    write_file_atomic(o->out, synthetic_text(static_cast<uint64_t>(o->bytes), globals.seed));
    if (globals.json) {
      print_json({{"out", o->out}, {"bytes", o->bytes}});
    } else {
      fmt::print("{}: {} bytes of synthetic text\n", o->out, o->bytes);
    }
    return 0;
  });
  sub->add_option("--bytes", o->bytes, "length of the text")->capture_default_str();
  sub->add_option("--task", o->task, "pairs of digit strings instead of text: reverse or copy")
      ->check(CLI::IsMember({"reverse", "copy"}));
  sub->add_option("--lines", o->lines, "pairs of a task")->capture_default_str();
  sub->add_option("--min-length", o->min_length, "digits of the shortest source")->capture_default_str();
  sub->add_option("--max-length", o->max_length, "digits of the longest source")->capture_default_str();
  sub->add_option("--out", o->out, "file to write")->required();
}

}  // namespace transept
