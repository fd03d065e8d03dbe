#include "study/machine.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(CpuModel, FindsTheName) {
  EXPECT_EQ(cpu_model("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.0GHz\nflags\t: a b\n"),
            "Some CPU @ 2.0GHz");
  EXPECT_EQ(cpu_model("processor : 0\nModel : Board 4 Rev 1.2\n"), "Board 4 Rev 1.2");
  EXPECT_EQ(cpu_model("processor : 0\nmodel name :\n"), "unknown");
  EXPECT_EQ(cpu_model(""), "unknown");
}

TEST(ThisMachine, SaysWhatItIs) {
  const Machine m = this_machine("baseline", "abc");
  EXPECT_FALSE(m.cpu.empty());
  EXPECT_GE(m.processors, 1);
  EXPECT_GT(m.memory_bytes, 0);
  EXPECT_FALSE(m.system.empty());
  EXPECT_EQ(m.instruction_set, "baseline");
  EXPECT_EQ(m.commit, "abc");
}

}  // namespace
}  // namespace transept
