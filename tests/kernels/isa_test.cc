#include "support/isa.h"

#include <set>
#include <string>

namespace transept {
namespace {

TEST(Isa, EachSetIsForcedInTurn) {
  std::set<std::string> seen;
  for_each_instruction_set([&] { seen.insert(instruction_set_name()); });
  EXPECT_EQ(seen.size(), all_instruction_sets().size());
  EXPECT_FALSE(seen.contains("Unknown"));
}

TEST(Isa, AfterASweepTheBestSetRuns) {
  for_each_instruction_set([] {});
  EXPECT_EQ(instruction_set(), all_instruction_sets().front());
}

TEST(Isa, AChoiceThatWasNotObeyedIsNoticed) {
  const ForcedInstructionSet forced(int64_t{1} << 22);  // reserved by Highway: no set has this bit
  EXPECT_FALSE(forced.obeyed());
}

}  // namespace
}  // namespace transept
