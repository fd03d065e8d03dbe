#include "base/memory.h"

#include <fstream>
#include <string>

namespace transept {
namespace {

// "Name:   1234 kB" in a file of such lines; 0 when it is not there.
int64_t field_bytes(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, name.size() + 1, name + ":") == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

}  // namespace

int64_t resident_bytes() { return field_bytes("/proc/self/status", "VmRSS"); }
int64_t peak_resident_bytes() { return field_bytes("/proc/self/status", "VmHWM"); }
void reset_peak_resident() { std::ofstream("/proc/self/clear_refs") << "5"; }
int64_t available_memory_bytes() {
  const int64_t available = field_bytes("/proc/meminfo", "MemAvailable");
  return available > 0 ? available : int64_t{4} << 30;
}

}  // namespace transept
