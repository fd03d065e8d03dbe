// A decoder through its cache against whole passes: sources, hidden states, branches; and what each refuses.
#include "infer/decoder.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "support/compare.h"
#include "support/models.h"
#include "support/throws.h"
#include "support/tolerances.h"

namespace transept {
namespace {

class Decoders : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr int64_t kTokens = 13, kVocab = 29, kWidth = 24;
  bool crosses() const { return std::string(GetParam()) == "encoder_decoder"; }
  std::vector<float> hidden(const Model& m, std::span<const int32_t> ids) {
    std::vector<float> out(ids.size() * kWidth);
    forward_hidden(m, pool_, ids, out, source_);
    return out;
  }
  std::vector<float> logits(const Model& m, std::span<const int32_t> ids) {
    std::vector<float> out(ids.size() * kVocab);
    forward_logits(m, pool_, ids, out, source_);
    return out;
  }
  Decoder decoder(const Model& m, int64_t branches = 1) { return Decoder(m, pool_, 30, 10, branches); }
  void begin(Decoder& d) {
    d.reset();
    if (crosses()) d.read_source(source_);
  }

  ThreadPool pool_{2};
  std::vector<int32_t> source_ = crosses() ? random_ids(7, kVocab, 2) : std::vector<int32_t>();
};

TEST_P(Decoders, PiecesGiveWhatAWholePassGives) {
  const auto m = random_model(topology_spec(GetParam()), false);
  const auto ids = random_ids(kTokens, kVocab, 1);
  const auto whole = logits(*m, ids), whole_hidden = hidden(*m, ids);
  Decoder d = decoder(*m);
  for (const size_t chunk : {1u, 3u, 13u}) {
    std::vector<float> got(whole.size()), got_hidden(whole_hidden.size());
    begin(d);
    for (size_t at = 0; at < ids.size(); at += chunk) {
      const size_t count = std::min(chunk, ids.size() - at);
      d.feed_all(std::span(ids).subspan(at, count), std::span(got).subspan(at * kVocab, count * kVocab));
    }
    EXPECT_TRUE(close(got, whole, tolerance::kKernel)) << "chunks of " << chunk;
    begin(d);
    for (size_t at = 0; at < ids.size(); at += chunk) {
      const size_t count = std::min(chunk, ids.size() - at);
      d.feed_hidden(std::span(ids).subspan(at, count), std::span(got_hidden).subspan(at * kWidth, count * kWidth));
    }
    EXPECT_TRUE(close(got_hidden, whole_hidden, tolerance::kKernel)) << "chunks of " << chunk;
  }
}

// More tokens than a decoder runs at a time.
TEST_P(Decoders, LongInputsAreOneSequence) {
  constexpr int64_t kLong = 600;
  const auto m = random_model(topology_spec(GetParam(), {{"max_position_embeddings", kLong}}), false);
  const auto ids = random_ids(kLong, kVocab, 1);
  const auto whole = logits(*m, ids), whole_hidden = hidden(*m, ids);
  std::vector<float> got(whole.size()), got_hidden(whole_hidden.size());
  Decoder d(*m, pool_, kLong, 10);
  begin(d);
  d.feed_all(ids, got);
  EXPECT_TRUE(close(got, whole, tolerance::kKernel));
  begin(d);
  d.feed_hidden(ids, got_hidden);
  EXPECT_TRUE(close(got_hidden, whole_hidden, tolerance::kKernel));
  begin(d);
  EXPECT_TRUE(close(d.feed(ids), std::span<const float>(whole).last(kVocab), tolerance::kKernel));
}

// Branches that split, die and change places give the logits of their own sequences.
TEST_P(Decoders, BranchesGiveWhatTheirOwnSequencesGive) {
  const auto m = random_model(topology_spec(GetParam()), false);
  Decoder d = decoder(*m, 3);
  begin(d);
  std::vector<std::vector<int32_t>> sequences{random_ids(4, kVocab, 3)};
  d.feed(sequences[0]);
  const std::vector<std::vector<int64_t>> steps{{0, 0, 0}, {2, 0, 2}, {1, 2}, {1, 1, 0}, {0}, {0, 0}, {1, 0}};
  uint64_t seed = 10;
  for (const auto& from : steps) {
    d.branch(from);
    const auto tokens = random_ids(static_cast<int64_t>(from.size()), kVocab, seed++);
    std::vector<std::vector<int32_t>> next;
    for (size_t b = 0; b < from.size(); ++b) {
      next.push_back(sequences[static_cast<size_t>(from[b])]);
      next.back().push_back(tokens[b]);
    }
    sequences = std::move(next);
    const auto got = d.step(tokens);
    ASSERT_EQ(got.size(), from.size() * kVocab);
    for (size_t b = 0; b < from.size(); ++b) {
      const auto whole = logits(*m, sequences[b]);
      EXPECT_TRUE(close(got.subspan(b * kVocab, kVocab), std::span(whole).last(kVocab), tolerance::kKernel));
    }
  }
  EXPECT_EQ(d.position(), static_cast<int64_t>(sequences[0].size()));
  // After a reset it is as new.
  begin(d);
  const auto whole = logits(*m, sequences[0]);
  EXPECT_TRUE(close(d.feed(sequences[0]), std::span(whole).last(kVocab), tolerance::kKernel));
}

INSTANTIATE_TEST_SUITE_P(Topologies, Decoders, ::testing::Values("decoder", "encoder_decoder"),
                         [](const auto& c) { return std::string(c.param); });

TEST(Decoder, AnEncoderIsRefused) {
  ThreadPool pool(1);
  const auto m = random_model(topology_spec("encoder"), false);
  EXPECT_THAT(input_error([&] { Decoder(*m, pool, 10); }), ::testing::HasSubstr("names masked tokens and does not"));
}

TEST(Decoder, SourcesMustFit) {
  ThreadPool pool(1);
  const auto m = random_model(topology_spec("encoder_decoder"), false);
  Decoder d(*m, pool, 10, 4);
  EXPECT_THROW(d.read_source({}), InputError);
  EXPECT_THROW(d.read_source(random_ids(5, 29, 1)), InputError);
  EXPECT_THROW(d.read_source(std::vector<int32_t>{29}), InputError);
}

}  // namespace
}  // namespace transept
