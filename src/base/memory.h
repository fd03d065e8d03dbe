// The memory that this process holds, as the system counts it (/proc/self/status).
#pragma once

#include <cstdint>

namespace transept {

int64_t resident_bytes();       // now
int64_t peak_resident_bytes();  // highest since the start, or since the last reset
void reset_peak_resident();     // where the system allows it; otherwise the peak goes on from before

int64_t available_memory_bytes();  // what could be taken without swapping; 4 GiB on a system that does not say

}  // namespace transept
