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
  // Cut into documents at `starts`, which begin with 0.
  Counted(int64_t n, std::vector<int64_t> starts) : Counted(n) {
    documents_ = std::move(starts);
    documents_.push_back(n);
  }
  Split split() const { return {array_, 0, array_.size(), Unit::kStream, documents_}; }

 private:
  TokenArray array_;
  std::vector<int64_t> documents_;
};

Sampler sampler_of(const Split& split, int64_t context, int64_t batch, uint64_t seed,
                   const ExampleOptions& options = {}) {
  static const Vocabulary vocabulary = vocabulary_of(*extend_tokenizer(byte_tokenizer(), 100));
  return {split, context, batch, seed, options, vocabulary};
}

// Documents of given ids, each as the corpus would hold it.
class Documents {
 public:
  explicit Documents(const std::vector<Ids>& documents, Unit unit = Unit::kLines) : array_(1000), unit_(unit) {
    for (const Ids& d : documents) {
      starts_.push_back(array_.size());
      array_.append(d);
    }
    starts_.push_back(array_.size());
  }
  Split split() const { return {array_, 0, array_.size(), unit_, starts_}; }

 private:
  TokenArray array_;
  std::vector<int64_t> starts_;
  Unit unit_;
};

TEST(StreamSampler, AnEpochVisitsEveryWindowOnceAndTheNextCutsElsewhere) {
  for (const int64_t n : {17, 18, 31, 32, 33, 100, 1000, 1001}) {
    const Counted stream(n);
    constexpr int64_t kContext = 16;
    const Sampler sampler = sampler_of(stream.split(), kContext, 1, 9);
    const int64_t units = sampler.units_per_epoch();
    EXPECT_EQ(units, std::max<int64_t>(1, (n - kContext) / kContext));
    std::set<int64_t> phases;
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      std::set<int32_t> targets, begins;
      for (int64_t i = 0; i < units; ++i) {
        const Batch b = sampler.batch(static_cast<uint64_t>(epoch * units + i));
        ASSERT_EQ(b.layout.size(), 1u);
        ASSERT_EQ(b.layout[0].rows, kContext);
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
  const Sampler sampler = sampler_of(stream.split(), 16, 1, 3);
  std::set<int32_t> targets;
  for (uint64_t i = 0; i < 2000; ++i) {
    for (const int32_t t : sampler.batch(i).targets) targets.insert(t);
  }
  EXPECT_EQ(targets.size(), 99u);  // all but the first
}

TEST(Sampler, APureFunctionOfSeedAndIndex) {
  const Counted stream(5000);
  const Sampler a = sampler_of(stream.split(), 16, 4, 1), b = sampler_of(stream.split(), 16, 4, 1),
                other = sampler_of(stream.split(), 16, 4, 2);
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
  const Sampler small = sampler_of(stream.split(), 16, 2, 1), big = sampler_of(stream.split(), 16, 6, 1);
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
  const Sampler sampler = sampler_of(stream.split(), 16, 1, 1);
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

// B34 of the collected bug reports: where pad equals eos, a real eos is still learnt. Here no row is filled up at all.
TEST(LinesSampler, RowsHaveTheirOwnLengths) {
  const Documents documents({{5, 6, 7, 2}, {5, 2}});
  const Batch b = sampler_of(documents.split(), 8, 2, 1).batch(0);
  EXPECT_EQ(b.target_count, 4);
  ASSERT_EQ(b.layout.size(), 2u);
  const bool long_first = b.layout[0].rows == 3;
  EXPECT_EQ(b.tokens, long_first ? (Ids{5, 6, 7, 5}) : (Ids{5, 5, 6, 7}));
  EXPECT_EQ(b.targets, long_first ? (Ids{6, 7, 2, 2}) : (Ids{2, 6, 7, 2}));
  EXPECT_EQ(b.layout[1].first_row, long_first ? 3 : 1);
  EXPECT_EQ(b.layout[1].first_position, 0);
}

TEST(LinesSampler, EveryDocumentOnceAnEpochAndLongOnesAreCut) {
  std::vector<Ids> list;
  for (int32_t d = 0; d < 37; ++d) {
    Ids ids(static_cast<size_t>(1 + d % 12), d + 3);
    ids.push_back(2);
    list.push_back(ids);
  }
  const Documents documents(list);
  const Sampler sampler = sampler_of(documents.split(), 5, 1, 4);
  EXPECT_EQ(sampler.units_per_epoch(), 37);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int32_t> seen;
    for (uint64_t i = 0; i < 37; ++i) {
      const Batch b = sampler.batch(epoch * 37 + i);
      const int32_t d = b.tokens[0] - 3;
      ASSERT_TRUE(seen.insert(d).second);
      const int64_t inputs = std::min<int64_t>(1 + d % 12, 5);
      ASSERT_EQ(b.layout[0].rows, inputs);
      ASSERT_EQ(b.target_count, inputs);
      ASSERT_EQ(b.targets.back(), d % 12 < 5 ? 2 : d + 3);
    }
  }
}

TEST(LinesSampler, ABatchAcrossTheEndOfAnEpochIsFull) {
  const Documents documents({{3, 2}, {4, 2}, {5, 2}});
  const Sampler sampler = sampler_of(documents.split(), 5, 2, 4);
  std::map<int32_t, int> counts;
  for (uint64_t i = 0; i < 3; ++i) {
    const Batch b = sampler.batch(i);
    EXPECT_EQ(b.target_count, 2);
    for (const int32_t t : b.tokens) ++counts[t];
  }
  EXPECT_EQ(counts, (std::map<int32_t, int>{{3, 2}, {4, 2}, {5, 2}}));
}

// A window is cut where a document begins: positions start anew, and no target lies in another document.
TEST(StreamSampler, SeparateDocumentsDoNotShareASequence) {
  const std::vector<int64_t> starts{0, 5, 7, 40, 41 + 2};
  const Counted stream(200, starts);
  const Sampler together = sampler_of(stream.split(), 16, 3, 1);
  const Sampler apart = sampler_of(stream.split(), 16, 3, 1, {.separate_documents = true});
  const auto document = [&](int32_t token) {
    return std::upper_bound(starts.begin(), starts.end(), token) - starts.begin();
  };
  int cuts = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const Batch whole = together.batch(i), b = apart.batch(i);
    Ids wanted;  // the targets of the window that are in the document of what they follow
    for (size_t r = 0; r < whole.tokens.size(); ++r) {
      if (document(whole.tokens[r]) == document(whole.targets[r])) wanted.push_back(whole.targets[r]);
    }
    ASSERT_EQ(b.targets, wanted);
    ASSERT_EQ(b.target_count, static_cast<int64_t>(wanted.size()));
    int64_t rows = 0;
    for (const SequenceRows& s : b.layout) {
      ASSERT_EQ(s.first_row, rows);
      ASSERT_EQ(s.first_position, 0);
      const size_t first = static_cast<size_t>(s.first_row), last = static_cast<size_t>(s.first_row + s.rows - 1);
      ASSERT_EQ(b.tokens[last], b.tokens[first] + s.rows - 1);
      ASSERT_EQ(document(b.tokens[first]), document(b.targets[last]));
      rows += s.rows;
    }
    ASSERT_EQ(rows, static_cast<int64_t>(b.tokens.size()));
    cuts += static_cast<int>(b.layout.size()) - 3;
  }
  EXPECT_GT(cuts, 20);
}

TEST(StreamSampler, OneDocumentSeparatedIsTheStream) {
  const Counted stream(500, {0});
  const Sampler a = sampler_of(stream.split(), 16, 2, 1);
  const Sampler b = sampler_of(stream.split(), 16, 2, 1, {.separate_documents = true});
  for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(a.batch(i).tokens, b.batch(i).tokens);
}

TEST(PairsSampler, TeacherForcing) {
  const Documents documents({{1, 2, 3, 257}, {3, 2, 1, 257}, {7, 257}, {8, 9, 257}}, Unit::kPairs);
  const Sampler sampler = sampler_of(documents.split(), 8, 2, 1, {.objective = Objective::kSeq2seq});
  EXPECT_EQ(sampler.units_per_epoch(), 2);
  const Batch b = sampler.batch(0);
  const bool in_order = b.source_tokens[0] == 1;
  EXPECT_EQ(b.source_tokens, in_order ? (Ids{1, 2, 3, 257, 7, 257}) : (Ids{7, 257, 1, 2, 3, 257}));
  EXPECT_EQ(b.tokens, in_order ? (Ids{256, 3, 2, 1, 256, 8, 9}) : (Ids{256, 8, 9, 256, 3, 2, 1}));
  EXPECT_EQ(b.targets, in_order ? (Ids{3, 2, 1, 257, 8, 9, 257}) : (Ids{8, 9, 257, 3, 2, 1, 257}));
  EXPECT_EQ(b.target_count, 7);
  ASSERT_EQ(b.layout.size(), 2u);
  ASSERT_EQ(b.source_layout.size(), 2u);
  EXPECT_EQ(b.source_layout[1].first_row, in_order ? 4 : 2);
}

class CorruptingSampler : public ::testing::TestWithParam<Objective> {};

// Whatever the objective, a batch is that of its index alone, every epoch corrupts anew, and no sequence is longer than
// the context.
TEST_P(CorruptingSampler, BatchesByIndexAndOtherOnesEveryEpoch) {
  const Counted stream(200, {0, 90});
  const int64_t shortest = GetParam() == Objective::kMlm ? 4 : 3;
  for (const int64_t context : {shortest, int64_t{16}, int64_t{50}}) {
    for (const bool separate : {false, true}) {
      const ExampleOptions options{GetParam(), separate, false};
      const Sampler a = sampler_of(stream.split(), context, 2, 1, options),
                    b = sampler_of(stream.split(), context, 2, 1, options),
                    other = sampler_of(stream.split(), context, 2, 2, options);
      std::set<Ids> seen;
      int same = 0;
      for (uint64_t i = 40; i-- > 0;) {
        const Batch x = a.batch(i), y = b.batch(i);
        ASSERT_EQ(x.tokens, y.tokens);
        ASSERT_EQ(x.targets, y.targets);
        ASSERT_EQ(x.source_tokens, y.source_tokens);
        ASSERT_GT(x.target_count, 0);
        for (const BatchLayout* layout : {&x.layout, &x.source_layout}) {
          for (const SequenceRows& s : *layout) ASSERT_LE(s.rows, context);
        }
        if (GetParam() != Objective::kMlm) {
          ASSERT_EQ(x.layout.size(), x.source_layout.size());
        }
        Ids all = x.tokens;
        all.insert(all.end(), x.source_tokens.begin(), x.source_tokens.end());
        seen.insert(all);
        same += x.tokens == other.batch(i).tokens && x.source_tokens == other.batch(i).source_tokens;
      }
      EXPECT_GT(seen.size(), 35u);
      EXPECT_LT(same, 3);
    }
  }
}

// A line has no phase: what changes from epoch to epoch is the corruption alone.
TEST_P(CorruptingSampler, ALineIsCorruptedAnewEveryEpoch) {
  Ids line(60);
  for (size_t i = 0; i < line.size(); ++i) line[i] = static_cast<int32_t>(i);
  line.push_back(257);
  const Documents documents({line});
  const Sampler sampler = sampler_of(documents.split(), 64, 1, 1, {.objective = GetParam()});
  ASSERT_EQ(sampler.units_per_epoch(), 1);
  std::set<std::pair<Ids, Ids>> seen;
  for (uint64_t epoch = 0; epoch < 30; ++epoch) {
    const Batch b = sampler.batch(epoch);
    seen.insert({b.tokens, b.source_tokens});
  }
  EXPECT_EQ(seen.size(), 30u);
}

// A full window leaves a source of exactly `context` tokens.
TEST(SpanSampler, WindowsFillTheContext) {
  const Counted stream(250);
  for (const int64_t context : {3, 16, 50, 128}) {
    const Batch b = sampler_of(stream.split(), context, 2, 1, {.objective = Objective::kSpan}).batch(0);
    for (const SequenceRows& s : b.source_layout) EXPECT_EQ(s.rows, context);
  }
}

// Each sequence begins with bos and ends with eos, which stand nowhere else here and are never asked for.
void expect_framed(const Batch& b) {
  for (const SequenceRows& s : b.layout) {
    for (int64_t i = 0; i < s.rows; ++i) {
      const auto row = static_cast<size_t>(s.first_row + i);
      ASSERT_EQ(b.tokens[row] == 256, i == 0);
      ASSERT_EQ(b.tokens[row] == 257, i + 1 == s.rows);
      if (i == 0 || i + 1 == s.rows) {
        ASSERT_EQ(b.targets[row], kIgnoredTarget);
      }
    }
  }
}

TEST(MlmSampler, WindowsAreFramedAndFillTheContext) {
  const Counted stream(250, {0, 90});
  for (const int64_t context : {4, 16, 50}) {
    for (const bool separate : {false, true}) {
      const Sampler sampler =
          sampler_of(stream.split(), context, 2, 1, {.objective = Objective::kMlm, .separate_documents = separate});
      for (uint64_t i = 0; i < 20; ++i) {
        const Batch b = sampler.batch(i);
        expect_framed(b);
        for (const SequenceRows& s : b.layout) {
          ASSERT_LE(s.rows, context);
          if (!separate) {
            ASSERT_EQ(s.rows, context);
          }
        }
      }
    }
  }
}

TEST_P(CorruptingSampler, Lines) {
  const Documents documents({{5, 6, 7, 257}, {5, 257}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 257}});
  const Sampler sampler = sampler_of(documents.split(), 6, 3, 1, {.objective = GetParam()});
  for (uint64_t i = 0; i < 20; ++i) {
    const Batch b = sampler.batch(i);
    EXPECT_EQ(b.layout.size(), 3u);
    EXPECT_GE(b.target_count, 3);
    if (GetParam() == Objective::kMlm) {
      EXPECT_EQ(b.tokens.size(), 5u + 3 + 6);
      expect_framed(b);
    }
    // A line's own end is not a second one.
    for (size_t r = 0; r + 1 < b.source_tokens.size(); ++r)
      EXPECT_FALSE(b.source_tokens[r] == 257 && b.source_tokens[r + 1] == 257);
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, CorruptingSampler,
                         ::testing::Values(Objective::kMlm, Objective::kSpan, Objective::kDenoise),
                         [](const auto& c) { return std::string(objective_name(c.param)); });

}  // namespace
}  // namespace transept
