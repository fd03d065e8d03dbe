// Runs a check once on each instruction set that the kernels are compiled for and this machine has, and fails where the
// set that would run is not the one that was asked for: a sweep that silently tests one set many times proves nothing.
#pragma once

#include <gtest/gtest.h>

#include "hwy/targets.h"
#include "kernels/isa.h"

namespace transept {

// Forces one set until the object dies.
class ForcedInstructionSet {
 public:
  explicit ForcedInstructionSet(int64_t target) : target_(target) { choose(target); }
  ~ForcedInstructionSet() { choose(0); }
  ForcedInstructionSet(const ForcedInstructionSet&) = delete;
  ForcedInstructionSet& operator=(const ForcedInstructionSet&) = delete;

  ::testing::AssertionResult obeyed() const {
    if (instruction_set() == target_) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "asked for " << hwy::TargetName(target_) << ", but the kernels run on "
                                         << instruction_set_name();
  }

 private:
  static void choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  int64_t target_;
};

template <class Check>
void for_each_instruction_set(const Check& check) {
  for (const int64_t target : all_instruction_sets()) {
    const ForcedInstructionSet forced(target);
    SCOPED_TRACE(hwy::TargetName(target));
    ASSERT_TRUE(forced.obeyed());
    check();
    ASSERT_TRUE(forced.obeyed());
  }
}

}  // namespace transept
