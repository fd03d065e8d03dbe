// The machine a figure was measured on.
#pragma once

#include <cstdint>
#include <string>

namespace transept {

struct Machine {
  std::string cpu;              // model name
  int processors = 0;           // that this process may use
  int64_t memory_bytes = 0;     // 0: unknown
  std::string system;           // kernel name, release, architecture
  std::string instruction_set;  // that the kernels dispatched to
  std::string commit;           // of the program
};

Machine this_machine(std::string instruction_set, std::string commit);

// The "model name" (x86), or what stands in its place elsewhere, of a /proc/cpuinfo text; "unknown" when there is none.
std::string cpu_model(const std::string& cpuinfo);

}  // namespace transept
