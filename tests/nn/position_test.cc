// Position modules: tables against closed forms, growth that changes nothing, no state left by a length, and models of
// the kinds that need nothing of attention.
#include "nn/position/position.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "infer/decoder.h"
#include "ops/rope.h"
#include "support/compare.h"
#include "support/models.h"
#include "support/position_rows.h"
#include "support/tolerances.h"
#include "train/evaluate.h"

namespace transept {
namespace {

constexpr int64_t kHeadDim = 16;

ArchSpec spec_of(const Json& position) {
  return spec_from_json({{"vocab_size", 29},
                         {"hidden_size", 4 * kHeadDim},
                         {"max_position_embeddings", 40},
                         {"initializer_range", 0.15},
                         {"position", position},
                         {"attention", {{"num_attention_heads", 4}}},
                         {"ffn", {{"intermediate_size", 20}}},
                         {"num_hidden_layers", 2}},
                        "case");
}

struct Built {
  Built(const Built&) = delete;
  explicit Built(const Json& position)
      : spec(spec_of(position)),
        parameters(spec),
        module(build_position(spec.position, spec, parameters, "position.")) {}
  ArchSpec spec;
  Parameters parameters;
  std::unique_ptr<Position> module;
};

std::vector<Json> rope_rules() {
  std::vector<Json> rules;
  for (const RopeRule& rule : rope_rule_rows()) rules.push_back(rule.stretched);
  return rules;
}

// The score of two rotated vectors is a function of the offset alone (arXiv:2104.09864 equation 16), whatever the rule:
// per pair, amplitude^2 cos((p - k) f) and the same with the sine.
TEST(Rope, ScoresDependOnlyOnTheOffset) {
  ASSERT_EQ(rope_rules().size(), RopeScalingKinds::kNames.size()) << "a rule without a row";
  for (const Json& rule : rope_rules()) {
    const Built built(Json{{"theta", 100}, {"scaling", rule}});
    for (const int64_t length : {int64_t{10}, int64_t{60}}) {
      const RopeAngles angles = std::get<RopePosition>(built.spec.position).angles(kHeadDim, length, 40);
      const auto table = built.module->rotation(length, kHeadDim, length);
      ASSERT_EQ(table->pairs, kHeadDim / 2);
      const double power = angles.amplitude * angles.amplitude;
      for (int64_t p = 0; p < length; ++p) {
        for (int64_t k = 0; k < length; ++k) {
          for (int64_t i = 0; i < table->pairs; ++i) {
            const auto at = [&](const std::vector<float>& of, int64_t position) {
              return static_cast<double>(of[static_cast<size_t>(position * table->pairs + i)]);
            };
            const double turn = static_cast<double>(p - k) * angles.inv_freq[static_cast<size_t>(i)];
            ASSERT_NEAR(at(table->cos, p) * at(table->cos, k) + at(table->sin, p) * at(table->sin, k),
                        power * std::cos(turn), tolerance::kFloat)
                << rule;
            ASSERT_NEAR(at(table->sin, p) * at(table->cos, k) - at(table->cos, p) * at(table->sin, k),
                        power * std::sin(turn), tolerance::kFloat)
                << rule;
          }
        }
      }
    }
  }
}

// B05: a long request between two short ones changes nothing, and rules that do not look at the length ignore it.
TEST(Rope, TheSameLengthGivesTheSameTable) {
  for (const Json& rule : rope_rules()) {
    const Built built(Json{{"scaling", rule}});
    const auto first = built.module->rotation(6, kHeadDim, 6);
    const auto longer = built.module->rotation(60, kHeadDim, 60);
    for (int64_t length = 7; length < 30; ++length) built.module->rotation(length, kHeadDim, length);
    const auto again = built.module->rotation(6, kHeadDim, 6);
    EXPECT_EQ(first->cos, again->cos) << rule;
    EXPECT_EQ(first->sin, again->sin) << rule;
    const bool by_length = std::get<RopePosition>(built.spec.position).by_length();
    EXPECT_EQ(first->cos == longer->cos, !by_length) << rule;
    // The length decides, not how far positions have come.
    EXPECT_EQ(built.module->rotation(6, kHeadDim, 60)->cos, longer->cos) << rule;
  }
}

TEST(Rope, ManyLengthsDoNotFillTheMemory) {
  const Built built(Json{{"scaling", {{"kind", "dynamic"}, {"factor", 3}}}});
  const int64_t rows = 1 << 17;
  const std::weak_ptr<const RotationTable> first = built.module->rotation(rows, kHeadDim, rows);
  const auto kept = built.module->rotation(256, kHeadDim, 1);
  EXPECT_FALSE(first.expired()) << "a few are kept";
  EXPECT_EQ(built.module->rotation(256, kHeadDim, 1), kept);
  for (int64_t more = 1; more < 10; ++more) built.module->rotation(rows, kHeadDim, rows + more);
  EXPECT_TRUE(first.expired());
}

TEST(Rope, TablesGrowWithoutChanging) {
  const Built built(Json{{"kind", "rope"}});
  const auto few = built.module->rotation(1, kHeadDim, 1), many = built.module->rotation(3000, kHeadDim, 3000);
  ASSERT_GE(many->positions, 3000);
  ASSERT_GT(many->cos.size(), few->cos.size());
  EXPECT_TRUE(std::equal(few->cos.begin(), few->cos.end(), many->cos.begin()));
  EXPECT_TRUE(std::equal(few->sin.begin(), few->sin.end(), many->sin.begin()));
  EXPECT_EQ(built.module->rotation(10, kHeadDim, 10), many) << "it is kept";
}

TEST(Rope, PartOfAHeadAndPairing) {
  const Built built(Json{{"partial_rotary_factor", 0.5}, {"pairing", "interleaved"}});
  const auto table = built.module->rotation(4, kHeadDim, 4);
  EXPECT_EQ(table->pairs, kHeadDim / 4);
  EXPECT_TRUE(table->interleaved);
  // theta^(-2i / 8), not / 16: the exponent counts the elements that turn.
  EXPECT_NEAR(table->cos[static_cast<size_t>(table->pairs + 1)], std::cos(std::pow(10000, -2.0 / 8)),
              tolerance::kFloat);
  const Built half(Json{{"partial_rotary_factor", 0.5}});
  EXPECT_FALSE(half.module->rotation(4, kHeadDim, 4)->interleaved);
}

TEST(Rope, AmplitudeIsInTheTable) {
  const Json yarn = {{"kind", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 32}};
  const Built built(Json{{"scaling", yarn}});
  EXPECT_EQ(built.module->rotation(1, kHeadDim, 1)->cos[0], static_cast<float>(0.1 * std::log(4) + 1));
}

TEST(Sinusoidal, SinesAtEvenFeaturesCosinesAtOdd) {
  const Built built(Json{{"kind", "sinusoidal"}});
  const int64_t hidden = built.spec.hidden_size;
  const Param few = built.module->embedding(3);
  const std::vector<float> before(few.value, few.value + few.out * hidden);
  const Param table = built.module->embedding(1000);
  EXPECT_EQ(table.gradient, nullptr);
  ASSERT_GE(table.out, 1000);
  ASSERT_EQ(table.in, hidden);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), table.value)) << "growth changes nothing";
  for (const int64_t p : {0, 1, 7, 999}) {
    for (int64_t i = 0; i < hidden / 2; ++i) {
      const double angle =
          static_cast<double>(p) / std::pow(10000, 2 * static_cast<double>(i) / static_cast<double>(hidden));
      EXPECT_NEAR(table.value[p * hidden + 2 * i], std::sin(angle), tolerance::kFloat);
      EXPECT_NEAR(table.value[p * hidden + 2 * i + 1], std::cos(angle), tolerance::kFloat);
    }
  }
  EXPECT_EQ(built.module->end(), INT64_MAX);
}

TEST(Sinusoidal, HalvesAreTheSameWavesInAnotherOrder) {
  const Built neighbours(Json{{"kind", "sinusoidal"}}), halves(Json{{"kind", "sinusoidal"}, {"pairing", "half_split"}});
  const int64_t hidden = halves.spec.hidden_size, half = hidden / 2;
  const float *a = neighbours.module->embedding(9).value, *b = halves.module->embedding(9).value;
  for (int64_t p = 0; p < 9; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      EXPECT_EQ(b[p * hidden + i], a[p * hidden + 2 * i]);
      EXPECT_EQ(b[p * hidden + half + i], a[p * hidden + 2 * i + 1]);
    }
  }
}

TEST(Learned, TheTableIsTheParameter) {
  Built built(Json{{"kind", "learned"}});
  const Param table = built.module->embedding(5);
  EXPECT_EQ(table.value, built.parameters.param("position.weight").value);
  EXPECT_EQ(built.module->end(), 40);
}

// Entry (g, d, h) of a bias.
float entry(const ScoreBias& bias, int64_t group, int64_t g, int64_t distance, int64_t h) {
  return (*bias.table)[static_cast<size_t>((g * bias.distances + distance - bias.first) * group + h)];
}

TEST(Alibi, SlopeTimesDistance) {
  const Built built(Json{{"kind", "alibi"}});
  for (const auto& [heads, kv_heads] : {std::pair<int64_t, int64_t>{6, 6}, {6, 2}, {12, 1}}) {
    const std::vector<double> slopes = AlibiPosition{}.slopes(heads);
    const int64_t group = heads / kv_heads;
    for (const bool causal : {true, false}) {
      for (const int64_t positions : {int64_t{5}, int64_t{300}, int64_t{7}}) {
        const ScoreBias bias = built.module->score_bias(heads, kv_heads, causal, positions);
        ASSERT_EQ(static_cast<int64_t>(bias.table->size()), heads * bias.distances);
        ASSERT_TRUE(causal ? bias.first == 0 : bias.first <= -(positions - 1));
        ASSERT_GE(bias.first + bias.distances, positions);
        EXPECT_FALSE(bias.parameter) << "constant";
        for (int64_t distance = causal ? 0 : 1 - positions; distance < positions; ++distance) {
          for (int64_t head = 0; head < heads; ++head) {
            const double right = -slopes[static_cast<size_t>(head)] * std::abs(static_cast<double>(distance));
            ASSERT_EQ(entry(bias, group, head / group, distance, head % group), static_cast<float>(right));
          }
        }
      }
    }
  }
}

TEST(T5, TheTableIsReadFromTheParameter) {
  Built built(Json{{"kind", "t5"}, {"num_buckets", 8}, {"max_distance", 16}});
  const auto& kind = std::get<T5Position>(built.spec.position);
  const auto values = built.parameters.values(*built.parameters.find("position.bias"));
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 100 * static_cast<float>(round);
    for (const int64_t kv_heads : {1, 2, 4}) {
      for (const bool causal : {true, false}) {
        for (const int64_t positions : {1, 9, 40, 6}) {
          const ScoreBias bias = built.module->score_bias(4, kv_heads, causal, positions);
          ASSERT_EQ(bias.first, causal ? 0 : 1 - positions);
          ASSERT_EQ(bias.first + bias.distances, positions);
          ASSERT_EQ(static_cast<int64_t>(bias.bucket.size()), bias.distances);
          ASSERT_EQ(bias.parameter.value, values.data());
          for (int64_t distance = bias.first; distance < positions; ++distance) {
            const int64_t bucket = kind.bucket(distance, causal);
            ASSERT_EQ(bias.bucket[static_cast<size_t>(distance - bias.first)], bucket);
            for (int64_t head = 0; head < 4; ++head) {
              ASSERT_EQ(entry(bias, 4 / kv_heads, head / (4 / kv_heads), distance, head % (4 / kv_heads)),
                        values[static_cast<size_t>(bucket * 4 + head)]);
            }
          }
        }
      }
    }
  }
}

// A kind has the hooks that it needs and no others.
TEST(Position, HooksOfEveryKind) {
  for (const std::string_view name : PositionKinds::kNames) {
    const Built built(Json{{"kind", name}});
    SCOPED_TRACE(std::string(name));
    EXPECT_EQ(static_cast<bool>(built.module->embedding(3)), name == "learned" || name == "sinusoidal");
    EXPECT_EQ(built.module->rotation(3, kHeadDim, 3) != nullptr, name == "rope");
    EXPECT_EQ(static_cast<bool>(built.module->score_bias(4, 2, true, 3)), name == "alibi" || name == "t5");
  }
}

TEST(Position, DecodesAsItRunsForward) {
  constexpr int64_t kTokens = 17;
  ThreadPool pool(2);
  const Json yarn = {{"kind", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 10}};
  for (const Json& position : {Json{{"kind", "sinusoidal"}}, Json{{"partial_rotary_factor", 0.5}, {"scaling", yarn}}}) {
    const auto model = random_model(spec_of(position), false);
    const int64_t vocab = model->spec().vocab_size;
    const auto ids = random_ids(kTokens, vocab, 1);
    std::vector<float> whole(static_cast<size_t>(kTokens * vocab)), chunked(whole.size());
    forward_logits(*model, pool, ids, whole);
    Decoder decoder(*model, pool, kTokens);
    for (int64_t at = 0; at < kTokens; ++at) {
      decoder.feed_all(std::span(ids).subspan(static_cast<size_t>(at), 1),
                       std::span(chunked).subspan(static_cast<size_t>(at * vocab), static_cast<size_t>(vocab)));
    }
    EXPECT_TRUE(close(chunked, whole, tolerance::kKernel)) << position;
    // Order matters: without positions the last row would see the same set of tokens either way.
    auto swapped = ids;
    std::swap(swapped[0], swapped[1]);
    forward_logits(*model, pool, swapped, chunked);
    const size_t last = static_cast<size_t>((kTokens - 1) * vocab);
    EXPECT_FALSE(
        close(std::span<const float>(chunked).subspan(last), std::span<const float>(whole).subspan(last), 1e-3));
  }
}

}  // namespace
}  // namespace transept
