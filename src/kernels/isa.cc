#include "kernels/isa.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/isa.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

int64_t Target() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(Target);

int64_t instruction_set() { return HWY_DYNAMIC_DISPATCH(Target)(); }

const char* instruction_set_name() { return hwy::TargetName(instruction_set()); }

std::vector<int64_t> all_instruction_sets() {
  std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  // The baseline that the compiler itself assumes runs everywhere, whether or not the CPU detection lists it.
  if (std::find(targets.begin(), targets.end(), HWY_STATIC_TARGET) == targets.end())
    targets.push_back(HWY_STATIC_TARGET);
  return targets;
}

}  // namespace transept
#endif
