// Large arrays: zeroed, aligned to a page, moved without copies, refused when they cannot be had.
#include "tensor/floats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "support/throws.h"

namespace transept {
namespace {

TEST(Floats, AreZeroPageAlignedAndWritable) {
  for (const int64_t count : {int64_t{1}, int64_t{1000}, int64_t{3} << 20}) {
    // Twice: memory that another array left behind is zero again.
    for (int round = 0; round < 2; ++round) {
      const Floats x(count);
      EXPECT_EQ(x.size(), count);
      EXPECT_EQ(static_cast<int64_t>(x.span().size()), count);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data()) % static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), 0u);
      EXPECT_TRUE(std::all_of(x.span().begin(), x.span().end(), [](float v) { return v == 0; }));
      std::fill(x.span().begin(), x.span().end(), 1.f);
    }
  }
}

TEST(Floats, MemoryReturnsToTheSystemAtTheEnd) {
  float* gone[2];
  {
    Floats a(1000), b(2000);
    gone[0] = a.data();
    gone[1] = b.data();
    b = std::move(a);
  }
  unsigned char resident;
  for (float* p : gone) {
    // mincore knows no such page once it is unmapped.
    EXPECT_EQ(::mincore(p, 1, &resident), -1);
    EXPECT_EQ(errno, ENOMEM);
  }
}

TEST(Floats, NoneIsEmpty) {
  const Floats none, zero(0);
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(none.span().empty());
  EXPECT_EQ(zero.data(), nullptr);
}

TEST(Floats, AMoveHandsTheMemoryOver) {
  Floats a(100);
  float* const data = a.data();
  data[7] = 7;
  Floats b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.size(), 100);
  Floats c(5);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.size(), 100);
  EXPECT_EQ(c.data()[7], 7);
}

TEST(Floats, MoreThanTheAddressSpaceIsAnEnvironmentError) {
  // The last two have a number of bytes that wraps around to a small one.
  for (const int64_t count : {int64_t{1} << 55, int64_t{1} << 62, (int64_t{1} << 62) + 1024}) {
    EXPECT_THAT(environment_error([&] { const Floats x(count); }), ::testing::HasSubstr("MiB cannot be had")) << count;
  }
}

}  // namespace
}  // namespace transept
