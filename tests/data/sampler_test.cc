#include "data/sampler.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace transept {
namespace {
using ::testing::ElementsAre;
using Ids = std::vector<int32_t>;

// A stream whose tokens are their own places, so that a window tells where it was cut.
class Counted {
 public:
  explicit Counted(int64_t n) : array_(n) {
    for (int32_t i = 0; i < n; ++i) array_.append(std::span(&i, 1));
  }
  Split split() const { return {array_, 0, array_.size(), Unit::kStream, {}, 0}; }

 private:
  TokenArray array_;
};

// Documents of given ids, each as the corpus would hold it.
class Documents {
 public:
  explicit Documents(const std::vector<Ids>& documents, int32_t pad) : array_(1000), pad_(pad) {
    for (const Ids& d : documents) {
      starts_.push_back(array_.size());
      array_.append(d);
    }
    starts_.push_back(array_.size());
  }
  Split split() const { return {array_, 0, array_.size(), Unit::kLines, starts_, pad_}; }

 private:
  TokenArray array_;
  std::vector<int64_t> starts_;
  int32_t pad_;
};

TEST(StreamSampler, AnEpochVisitsEveryWindowOnceAndTheNextCutsElsewhere) {
  for (const int64_t n : {17, 18, 31, 32, 33, 100, 1000, 1001}) {
    const Counted stream(n);
    constexpr int64_t kContext = 16;
    const Sampler sampler(stream.split(), kContext, 1, 9);
    const int64_t units = sampler.units_per_epoch();
    EXPECT_EQ(units, std::max<int64_t>(1, (n - kContext) / kContext));
    std::set<int64_t> phases;
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      std::set<int32_t> targets, begins;
      for (int64_t i = 0; i < units; ++i) {
        const Batch b = sampler.batch(static_cast<uint64_t>(epoch * units + i));
        ASSERT_EQ(b.sequences, 1);
        ASSERT_EQ(b.length, kContext);
        ASSERT_EQ(b.target_count, kContext);
        for (int64_t t = 0; t < kContext; ++t) {
          const size_t at = static_cast<size_t>(t);
          ASSERT_EQ(b.tokens[at], b.tokens[0] + t);
          ASSERT_EQ(b.targets[at], b.tokens[at] + 1);
          ASSERT_LT(b.targets[at], n);
          ASSERT_TRUE(targets.insert(b.targets[at]).second) << "a token is a target twice in one epoch";
        }
        begins.insert(b.tokens[0]);
      }
      ASSERT_EQ(static_cast<int64_t>(targets.size()), units * kContext);
      phases.insert(*begins.begin());
      ASSERT_LT(*begins.begin(), 2 * kContext);
      for (const int32_t b : begins) ASSERT_EQ((b - *begins.begin()) % kContext, 0);
    }
    if (n >= 31) {
      EXPECT_GT(phases.size(), 5u) << n;
    }
  }
}

TEST(StreamSampler, OverManyEpochsEveryTokenIsATarget) {
  const Counted stream(100);
  const Sampler sampler(stream.split(), 16, 1, 3);
  std::set<int32_t> targets;
  for (uint64_t i = 0; i < 2000; ++i) {
    for (const int32_t t : sampler.batch(i).targets) targets.insert(t);
  }
  EXPECT_EQ(targets.size(), 99u);  // all but the first
}

TEST(Sampler, APureFunctionOfSeedAndIndex) {
  const Counted stream(5000);
  const Sampler a(stream.split(), 16, 4, 1), b(stream.split(), 16, 4, 1), other(stream.split(), 16, 4, 2);
  int same = 0;
  for (uint64_t i = 200; i-- > 0;) {  // backwards: nothing depends on what was asked before
    const Batch x = a.batch(i), y = b.batch(i);
    EXPECT_EQ(x.tokens, y.tokens);
    EXPECT_EQ(x.targets, y.targets);
    same += x.tokens == other.batch(i).tokens;
  }
  EXPECT_EQ(same, 0);
}

// The micro-batches of an accumulated step are the rows of the big batch.
TEST(Sampler, SmallBatchesAreThePartsOfABigOne) {
  const Counted stream(5000);
  const Sampler small(stream.split(), 16, 2, 1), big(stream.split(), 16, 6, 1);
  for (uint64_t step = 0; step < 100; ++step) {
    Ids joined;
    for (uint64_t k = 0; k < 3; ++k) {
      const Batch b = small.batch(step * 3 + k);
      joined.insert(joined.end(), b.tokens.begin(), b.tokens.end());
    }
    ASSERT_EQ(joined, big.batch(step).tokens);
  }
}

TEST(StreamSampler, OrdersOfEpochsDiffer) {
  const Counted stream(2000);
  const Sampler sampler(stream.split(), 16, 1, 1);
  const int64_t units = sampler.units_per_epoch();
  int same = 0, in_order = 0;
  for (int64_t i = 0; i < units; ++i) {
    const auto window = [&](int64_t at) { return sampler.batch(static_cast<uint64_t>(at)).tokens[0] / 16; };
    same += window(i) == window(units + i);
    in_order += window(i) == i;
  }
  EXPECT_LT(same, 15);
  EXPECT_LT(in_order, 15);
}

// B34 of the collected bug reports: where pad equals eos, a real eos is still learnt.
TEST(LinesSampler, TargetsAreMaskedByPlaceNotById) {
  const Documents documents({{5, 6, 7, 2}, {5, 2}}, 2);
  const Sampler sampler(documents.split(), 8, 2, 1);
  const Batch b = sampler.batch(0);
  EXPECT_EQ(b.target_count, 4);
  EXPECT_EQ(b.length, 3);
  const bool long_first = b.tokens[1] == 6;
  const size_t l = long_first ? 0 : 3, s = 3 - l;
  EXPECT_THAT(Ids(b.tokens.begin() + static_cast<long>(l), b.tokens.begin() + static_cast<long>(l) + 3),
              ElementsAre(5, 6, 7));
  EXPECT_THAT(Ids(b.targets.begin() + static_cast<long>(l), b.targets.begin() + static_cast<long>(l) + 3),
              ElementsAre(6, 7, 2));
  EXPECT_THAT(Ids(b.tokens.begin() + static_cast<long>(s), b.tokens.begin() + static_cast<long>(s) + 3),
              ElementsAre(5, 2, 2));
  EXPECT_THAT(Ids(b.targets.begin() + static_cast<long>(s), b.targets.begin() + static_cast<long>(s) + 3),
              ElementsAre(2, kIgnoredTarget, kIgnoredTarget));
}

TEST(LinesSampler, EveryDocumentOnceAnEpochAndLongOnesAreCut) {
  std::vector<Ids> list;
  for (int32_t d = 0; d < 37; ++d) {
    Ids ids(static_cast<size_t>(1 + d % 12), d + 3);
    ids.push_back(2);
    list.push_back(ids);
  }
  const Documents documents(list, 0);
  const Sampler sampler(documents.split(), 5, 1, 4);
  EXPECT_EQ(sampler.units_per_epoch(), 37);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int32_t> seen;
    for (uint64_t i = 0; i < 37; ++i) {
      const Batch b = sampler.batch(epoch * 37 + i);
      const int32_t d = b.tokens[0] - 3;
      ASSERT_TRUE(seen.insert(d).second);
      const int64_t inputs = std::min<int64_t>(1 + d % 12, 5);
      ASSERT_EQ(b.length, inputs);
      ASSERT_EQ(b.target_count, inputs);
      ASSERT_EQ(b.targets.back(), d % 12 < 5 ? 2 : d + 3);
    }
  }
}

TEST(LinesSampler, ABatchAcrossTheEndOfAnEpochIsFull) {
  const Documents documents({{3, 2}, {4, 2}, {5, 2}}, 0);
  const Sampler sampler(documents.split(), 5, 2, 4);
  std::map<int32_t, int> counts;
  for (uint64_t i = 0; i < 3; ++i) {
    const Batch b = sampler.batch(i);
    EXPECT_EQ(b.target_count, 2);
    for (const int32_t t : b.tokens) ++counts[t];
  }
  EXPECT_EQ(counts, (std::map<int32_t, int>{{3, 2}, {4, 2}, {5, 2}}));
}

}  // namespace
}  // namespace transept
