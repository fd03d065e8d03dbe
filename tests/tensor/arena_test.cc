// The arena against what its header promises, and against a model that keeps the state of every line of memory.
#include "tensor/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "support/throws.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLine = Arena::kAlignment;

// Offsets from the first address that an arena hands out.
class Offsets {
 public:
  explicit Offsets(Arena& arena) : arena_(arena), base_(static_cast<std::byte*>(arena.allocate(1))) {
    arena.release(base_);
    arena.reset_peak();
  }
  size_t allocate(size_t bytes) { return static_cast<size_t>(static_cast<std::byte*>(arena_.allocate(bytes)) - base_); }
  void release(size_t offset) { arena_.release(base_ + offset); }

 private:
  Arena& arena_;
  std::byte* base_;
};

TEST(Arena, BlocksAreAlignedWritableAndCountedInWholeLines) {
  Arena arena;
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{100'000}}) {
    const size_t before = arena.live_bytes();
    void* p = arena.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % kLine, 0u);
    EXPECT_EQ(arena.live_bytes() - before, (bytes + kLine - 1) / kLine * kLine);
    std::memset(p, 0xff, bytes);
  }
}

TEST(Arena, TakesTheSmallestFreeBlockThatFits) {
  Arena arena;
  Offsets at(arena);
  const size_t wide = at.allocate(8 * kLine);
  at.allocate(kLine);
  const size_t fitting = at.allocate(4 * kLine);
  at.allocate(kLine);
  const size_t narrow = at.allocate(2 * kLine);
  at.allocate(kLine);
  for (const size_t hole : {wide, fitting, narrow}) at.release(hole);
  EXPECT_EQ(at.allocate(3 * kLine), fitting);
  EXPECT_EQ(at.allocate(kLine), fitting + 3 * kLine) << "the rest of a block that was cut is free";
  EXPECT_EQ(at.allocate(2 * kLine), narrow);
  EXPECT_EQ(at.allocate(8 * kLine), wide);
}

TEST(Arena, AmongEqualHolesTheLowestIsTaken) {
  Arena arena;
  Offsets at(arena);
  const size_t low = at.allocate(2 * kLine);
  at.allocate(kLine);
  const size_t high = at.allocate(2 * kLine);
  at.allocate(kLine);
  at.release(high);
  at.release(low);
  EXPECT_EQ(at.allocate(2 * kLine), low);
}

TEST(Arena, NeighboursThatAreFreeBecomeOne) {
  // Every order of releasing three neighbours between two that stay.
  std::vector<int> order{0, 1, 2};
  do {
    Arena arena;
    Offsets at(arena);
    at.allocate(kLine);
    const size_t blocks[3] = {at.allocate(kLine), at.allocate(2 * kLine), at.allocate(3 * kLine)};
    at.allocate(kLine);
    const size_t peak = arena.peak_bytes();
    for (const int i : order) at.release(blocks[i]);
    EXPECT_EQ(at.allocate(6 * kLine), blocks[0]);
    EXPECT_EQ(arena.peak_bytes(), peak);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Arena, GrowsFromTheFreeBlockAtItsEnd) {
  Arena arena;
  Offsets at(arena);
  at.allocate(kLine);
  const size_t last = at.allocate(2 * kLine);
  at.release(last);
  EXPECT_EQ(at.allocate(5 * kLine), last);
  EXPECT_EQ(arena.peak_bytes(), 6 * kLine);
}

TEST(Arena, PeakIsTheHighestOffsetEverUsedUntilItIsReset) {
  Arena arena;
  Offsets at(arena);
  EXPECT_EQ(arena.peak_bytes(), 0u);
  const size_t first = at.allocate(4 * kLine), second = at.allocate(4 * kLine);
  at.release(second);
  EXPECT_EQ(arena.peak_bytes(), 8 * kLine);
  EXPECT_EQ(arena.live_bytes(), 4 * kLine);
  arena.reset_peak();
  EXPECT_EQ(arena.peak_bytes(), 4 * kLine);
  at.release(first);
  arena.reset_peak();
  EXPECT_EQ(arena.peak_bytes(), 0u);
}

// What the arena does, line by line: best fit over runs of free lines below the end, lowest first, else growth from the
// end or from the free run that touches it.
class LineModel {
 public:
  size_t allocate(size_t lines) {
    std::optional<std::pair<size_t, size_t>> best;  // length, start
    for (const auto& run : free_runs()) {
      if (run.first >= lines && (!best || run < *best)) best = run;
    }
    size_t start = used_.size();
    if (best) {
      start = best->second;
    } else {
      while (start > 0 && !used_[start - 1]) --start;
    }
    if (start + lines > used_.size()) used_.resize(start + lines);
    std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(start), lines, true);
    peak_ = std::max(peak_, start + lines);
    return start;
  }
  void release(size_t start, size_t lines) {
    std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(start), lines, false);
  }
  size_t live() const { return static_cast<size_t>(std::count(used_.begin(), used_.end(), true)); }
  size_t peak() const { return peak_; }

 private:
  std::vector<std::pair<size_t, size_t>> free_runs() const {
    std::vector<std::pair<size_t, size_t>> runs;
    for (size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      const size_t start = i;
      while (i < used_.size() && !used_[i]) ++i;
      runs.emplace_back(i - start, start);
    }
    return runs;
  }
  std::vector<bool> used_;  // up to the end that was ever reached
  size_t peak_ = 0;
};

TEST(Arena, RandomRequestsGoWhereTheModelPutsThem) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const CounterRng rng(seed, Stream::kTest);
    Arena arena;
    Offsets at(arena);
    LineModel model;
    // The first address was used and released, so that the arena's end is one line in.
    model.release(model.allocate(1), 1);
    std::vector<std::pair<size_t, size_t>> live;  // start, lines
    size_t most = 0;
    for (uint64_t i = 0; i < 4000; ++i) {
      // Waves: growing, then shrinking, so that the heap empties now and then.
      const bool grow = live.empty() || rng.uniform(3 * i) < ((i / 300) % 2 == 0 ? 0.65 : 0.35);
      if (grow) {
        const size_t bytes = 1 + rng.below(3 * i + 1, rng.below(3 * i + 2, 8) == 0 ? 40 * kLine : 6 * kLine);
        const size_t lines = (bytes + kLine - 1) / kLine;
        const size_t offset = at.allocate(bytes), start = model.allocate(lines);
        ASSERT_EQ(offset, start * kLine) << "request " << i << " of seed " << seed;
        live.emplace_back(start, lines);
      } else {
        const size_t k = rng.below(3 * i + 1, live.size());
        at.release(live[k].first * kLine);
        model.release(live[k].first, live[k].second);
        live[k] = live.back();
        live.pop_back();
      }
      most = std::max(most, live.size());
      ASSERT_EQ(arena.live_bytes(), model.live() * kLine);
      ASSERT_EQ(arena.peak_bytes(), model.peak() * kLine);
    }
    EXPECT_GT(most, 20u) << "the waves never rose";
    for (const auto& [start, lines] : live) at.release(start * kLine);
    EXPECT_EQ(arena.live_bytes(), 0u);
    EXPECT_EQ(at.allocate(model.peak() * kLine), 0u) << "all is one free block again";
  }
}

TEST(Arena, TheSameRequestsGiveTheSameOffsets) {
  std::vector<size_t> runs[2];
  for (auto& run : runs) {
    const CounterRng rng(7, Stream::kTest);
    Arena arena;
    Offsets at(arena);
    std::vector<size_t> live;
    for (uint64_t i = 0; i < 500; ++i) {
      if (i % 3 == 2) {
        const size_t k = rng.below(i, live.size());
        at.release(live[k]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
      } else {
        live.push_back(at.allocate(1 + rng.below(i, 2000)));
        run.push_back(live.back());
      }
    }
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Arena, BeyondTheReserveIsAnEnvironmentErrorAndChangesNothing) {
  Arena arena(10 * kLine);
  Offsets at(arena);
  at.allocate(4 * kLine);
  const size_t last = at.allocate(4 * kLine);
  EXPECT_THAT(environment_error([&] { at.allocate(3 * kLine); }), HasSubstr("exceed the reserved address space"));
  at.release(last);
  // The free block at the end is not enough for this, and must be there afterwards.
  EXPECT_THAT(environment_error([&] { at.allocate(7 * kLine); }), HasSubstr("exceed the reserved address space"));
  EXPECT_THAT(environment_error([&] { at.allocate(11 * kLine); }), HasSubstr("does not fit"));
  EXPECT_THAT(environment_error([&] { at.allocate(std::numeric_limits<size_t>::max()); }), HasSubstr("does not fit"));
  EXPECT_EQ(arena.live_bytes(), 4 * kLine);
  EXPECT_EQ(at.allocate(6 * kLine), last);
  EXPECT_EQ(arena.peak_bytes(), 10 * kLine);
}

TEST(Arena, AReserveThatCannotBeHadIsHalvedUntilItCan) {
  Arena arena(std::numeric_limits<size_t>::max() / 2 + 1);  // 2^63 bytes: no machine has such a range
  void* p = arena.allocate(1000);
  std::memset(p, 1, 1000);
  arena.release(p);
}

TEST(ArenaDeath, ReleasesOnlyWhatItHandedOut) {
  Arena arena;
  std::byte* p = static_cast<std::byte*>(arena.allocate(2 * kLine));
  EXPECT_DEATH(arena.release(p + kLine), "does not hold");
  arena.release(p);
  EXPECT_DEATH(arena.release(p), "does not hold");
  EXPECT_DEATH(arena.allocate(0), "does not hold");
}

TEST(Buffer, MemoryReturnsWithTheLastHandle) {
  Arena arena;
  Buffer a(arena, 100);
  EXPECT_TRUE(a);
  EXPECT_TRUE(a.unique());
  EXPECT_EQ(a.size(), 100);
  {
    const Buffer b = a;
    EXPECT_EQ(b.data(), a.data());
    EXPECT_FALSE(a.unique());
    a.reset();
    EXPECT_FALSE(a);
    EXPECT_EQ(a.size(), 0);
    EXPECT_EQ(a.data(), nullptr);
    EXPECT_TRUE(b.unique());
    EXPECT_GE(arena.live_bytes(), 400u);
  }
  EXPECT_EQ(arena.live_bytes(), 0u);
}

TEST(Buffer, AMoveHandsTheMemoryOver) {
  Arena arena;
  Buffer a(arena, 10);
  float* const data = a.data();
  Buffer b(arena, 20);
  const size_t both = arena.live_bytes();
  b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.size(), 10);
  EXPECT_TRUE(b.unique());
  EXPECT_LT(arena.live_bytes(), both);
  EXPECT_FALSE(Buffer());
}

}  // namespace
}  // namespace transept
