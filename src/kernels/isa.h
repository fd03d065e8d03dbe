// Which instruction set the kernels run on. Highway compiles each kernel once an instruction set and chooses at run
// time; this names the choice for reports, and lets tests see that a forced choice was obeyed. The numbers are
// Highway's target bits (hwy/detect_targets.h).
#pragma once

#include <cstdint>
#include <vector>

namespace transept {

int64_t instruction_set();                    // of the kernels that would run now
const char* instruction_set_name();           // "AVX3", "AVX2", "SSE4", "NEON", ...
std::vector<int64_t> all_instruction_sets();  // those compiled into the kernels that this machine can run, best first

}  // namespace transept
