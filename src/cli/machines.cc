// transept machines: lists the types of machines that `plan --machine` knows, or those of a file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "plan/machine_type.h"

namespace transept {

void register_machines(Registry& registry) {
  auto file = std::make_shared<std::string>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("machines", "list the types of machines that `plan --machine` knows", [file, &globals] {
    const std::vector<MachineType> machines =
        file->empty() ? machine_types() : read_machine_types(read_json(*file), *file);
    if (globals.json) {
      Json list = Json::array();
      for (const MachineType& m : machines) list.push_back(to_json(m));
      print_json(list);
      return 0;
    }
    fmt::print("{:<14} {:>9} {:>9} {:>9} {:>10} {:>9} {:>6}\n", "", "f32", "16-bit", "memory", "bandwidth", "link",
               "USD");
    fmt::print("{:<14} {:>9} {:>9} {:>9} {:>10} {:>9} {:>6}\n", "machine", "TFLOP/s", "TFLOP/s", "GiB", "GB/s", "GB/s",
               "an hour");
    const auto figure = [](double value, double unit) {
      return value > 0 ? fmt::format("{:.4g}", value / unit) : std::string("-");
    };
    for (const MachineType& m : machines) {
      const auto f32 = m.flops_per_second.find("f32");
      const MachineType::Peak half = m.training_peak();
      fmt::print("{:<14} {:>9} {:>9} {:>9} {:>10} {:>9} {:>6}  {}\n", m.name,
                 figure(f32 == m.flops_per_second.end() ? 0 : f32->second, 1e12),
                 figure(half.dtype == "bf16" || half.dtype == "f16" ? half.flops_per_second : 0, 1e12),
                 figure(static_cast<double>(m.memory_bytes), int64_t{1} << 30), figure(m.memory_bytes_per_second, 1e9),
                 figure(m.interconnect_bytes_per_second, 1e9), figure(m.usd_per_hour, 1), m.description);
    }
    return 0;
  });
  sub->add_option("FILE", *file, "machines of this file in place of the table");
}

}  // namespace transept
