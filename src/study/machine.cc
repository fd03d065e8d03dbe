#include "study/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/thread_pool.h"

namespace transept {

std::string cpu_model(const std::string& cpuinfo) {
  for (const std::string_view key :
       {"model name", "Model", "cpu model", "Hardware"}) {  // x86; ARM boards; MIPS; older ARM
    std::istringstream lines(cpuinfo);
    for (std::string line; std::getline(lines, line);) {
      const size_t colon = line.find(':');
      if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
      if (line.find_first_not_of(" \t", key.size()) != colon) continue;  // a longer key
      const size_t start = line.find_first_not_of(" \t", colon + 1);
      if (start != std::string::npos) return line.substr(start);
    }
  }
  return "unknown";
}

Machine this_machine(std::string instruction_set, std::string commit) {
  Machine machine;
  std::ifstream file("/proc/cpuinfo");
  std::ostringstream text;
  text << file.rdbuf();
  machine.cpu = cpu_model(text.str());
  machine.processors = available_processors();
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) machine.memory_bytes = int64_t{pages} * page;
  utsname names{};
  if (::uname(&names) == 0) machine.system = std::string(names.sysname) + " " + names.release + " " + names.machine;
  machine.instruction_set = std::move(instruction_set);
  machine.commit = std::move(commit);
  return machine;
}

}  // namespace transept
