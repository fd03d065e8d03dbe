#include "study/attention_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/compare.h"
#include "support/models.h"
#include "support/position_rows.h"
#include "support/spec_sweep.h"
#include "support/throws.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kTokens = 17;

// The text is the encoder's where there is one.
void run(const Model& model, const OpContext& op, const ForwardCall& call) {
  model.spec().encoder_decoder() ? model.encoded(op, call) : model.hidden(op, call);
}

// The residual stream after each layer's attention.
std::map<int64_t, std::vector<double>> after_attention(const Model& model, const OpContext& op,
                                                       std::span<const int32_t> ids) {
  std::map<int64_t, std::vector<double>> seen;
  const auto observe = [&](std::string_view part, int64_t layer, ConstRows rows) {
    if (part != "attention" && part != "encoder attention") return;
    for (int64_t r = 0; r < rows.rows; ++r)
      seen[layer].insert(seen[layer].end(), rows.row(r), rows.row(r) + rows.width);
  };
  run(model, op, {.tokens = ids, .layout = equal_sequences(1, kTokens), .dropout = {}, .observe = observe});
  return seen;
}

// The values of each layer, [tokens, kv_heads, width].
struct Values {
  int64_t kv_heads, width;
  std::vector<double> v;
};
std::map<int64_t, Values> values_of(const Model& model, const OpContext& op, std::span<const int32_t> ids) {
  std::map<int64_t, Values> seen;
  run(model, op,
      {.tokens = ids,
       .layout = equal_sequences(1, kTokens),
       .dropout = {},
       .observe = {},
       .observe_scores = [&](int64_t layer, const ScoreOperands& o) {
         Values& values = seen[layer];
         values = {o.shape.kv_heads, o.shape.value_width(), {}};
         for (int64_t r = 0; r < kTokens; ++r) {
           const float* const row = o.inputs.kv.view().row(r) + o.inputs.v_column;
           values.v.insert(values.v.end(), row, row + values.kv_heads * values.width);
         }
       }});
  return seen;
}

// Maps times values, [tokens, heads, width].
std::vector<double> heads_of(std::span<const AttentionMap> maps, const Values& values) {
  const int64_t heads = static_cast<int64_t>(maps.size()), group = heads / values.kv_heads;
  std::vector<double> out(static_cast<size_t>(kTokens * heads * values.width));
  for (int64_t i = 0; i < kTokens; ++i) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t j = 0; j < kTokens; ++j) {
        const double p =
            static_cast<double>(maps[static_cast<size_t>(h)].probabilities[static_cast<size_t>(i * kTokens + j)]);
        for (int64_t e = 0; e < values.width; ++e)
          out[static_cast<size_t>((i * heads + h) * values.width + e)] +=
              p * values.v[static_cast<size_t>((j * values.kv_heads + h / group) * values.width + e)];
      }
    }
  }
  return out;
}

// Each layer's maps, values and output projection give what its attention adds to the residual stream, which is the
// difference that the projection makes. Norms stand before the sublayers, so that it adds it as it is.
void check_maps(const ArchSpec& spec) {
  ThreadPool pool(2);
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  const std::vector<int32_t> ids = random_ids(kTokens, spec.vocab_size, 4);
  const auto model = random_model(spec, false);
  const std::vector<AttentionMap> maps = attention_maps(*model, op, ids);
  const std::map<int64_t, Values> values = values_of(*model, op, ids);
  const auto after = after_attention(*model, op, ids);
  const std::string prefix = spec.encoder_decoder() ? "encoder.layers." : "layers.";
  ASSERT_FALSE(values.empty());
  size_t first = 0;
  for (const auto& [layer, v] : values) {
    std::vector<AttentionMap> of_layer;
    for (; first < maps.size() && maps[first].layer == layer; ++first) {
      EXPECT_EQ(maps[first].head, static_cast<int64_t>(of_layer.size()));
      of_layer.push_back(maps[first]);
    }
    Parameters& parameters = model->parameters();
    const std::string name = prefix + std::to_string(layer) + ".attention.output.";
    std::vector<float> weight, bias;
    const auto take = [&](const char* part, std::vector<float>& to) {
      const auto* entry = parameters.find(name + part);
      if (!entry) return;
      to.assign(parameters.values(*entry).begin(), parameters.values(*entry).end());
      std::ranges::fill(parameters.values(*entry), 0.0f);
    };
    take("weight", weight);
    take("bias", bias);
    const std::vector<double> before = after_attention(*model, op, ids).at(layer);
    std::ranges::copy(weight, parameters.values(*parameters.find(name + "weight")).begin());
    if (!bias.empty()) std::ranges::copy(bias, parameters.values(*parameters.find(name + "bias")).begin());

    const std::vector<double> heads = heads_of(of_layer, v);
    const size_t in = heads.size() / kTokens, out = weight.size() / in;
    ASSERT_EQ(before.size(), kTokens * out);
    std::vector<double> added, expected;
    for (size_t i = 0; i < kTokens; ++i) {
      for (size_t o = 0; o < out; ++o) {
        double sum = bias.empty() ? 0 : static_cast<double>(bias[o]);
        for (size_t e = 0; e < in; ++e) sum += static_cast<double>(weight[o * in + e]) * heads[i * in + e];
        expected.push_back(sum);
        added.push_back(after.at(layer)[i * out + o] - before[i * out + o]);
      }
    }
    EXPECT_TRUE(close(added, expected, tolerance::kKernel)) << "layer " << layer;
  }
  EXPECT_EQ(first, maps.size());
}

bool norms_stand_before(const ArchSpec& spec) {
  const StackSpec& stack = spec.encoder_decoder() ? spec.encoder : spec;
  return std::ranges::all_of(stack.layers, [](const LayerSpec& l) { return l.placement == NormPlacement::kPre; });
}

TEST(AttentionMaps, GiveWhatAttentionAddsWithEveryPosition) {
  std::vector<Json> positions = position_rows();
  positions.push_back({{"kind", "rope"}});
  for (const Json& position : positions) {
    for (const char* topology : {"decoder", "encoder", "encoder_decoder"}) {
      SCOPED_TRACE(position.dump() + topology);
      check_maps(topology_spec(topology, {{"position", position}}));
    }
  }
}

TEST(AttentionMaps, GiveWhatAttentionAddsWithEveryScore) {
  const Json rope = {{"kind", "rope"}}, alibi = {{"kind", "alibi"}};
  for (const Json& options : {
           Json{{"sliding_window", 3}},
           Json{{"logit_softcap", 0.5}},
           Json{{"num_key_value_heads", 2}},
           Json{{"num_key_value_heads", 1}},
           Json{{"sinks", true}},
           Json{{"qk_norm", "rmsnorm"}, {"scale", 0.9}},
           Json{{"clip_qkv", 0.2}, {"qkv_bias", true}, {"output_bias", true}},
           Json{{"num_key_value_heads", 2}, {"sliding_window", 4}, {"logit_softcap", 0.5}, {"sinks", true}},
       }) {
    for (const Json& position : {rope, alibi}) {
      Json attention{{"num_attention_heads", 4}};
      attention.update(options);
      SCOPED_TRACE(attention.dump());
      check_maps(topology_spec("decoder", {{"position", position}, {"attention", attention}}));
    }
  }
}

// Latent attention, mixed layers, stretched rotations: every pair of choices of a spec whose norms stand before.
TEST(AttentionMaps, GiveWhatAttentionAddsOverTheSweep) {
  int64_t checked = 0, latent = 0;
  for (const SpecCase& c : spec_cases()) {
    if (!norms_stand_before(c.spec)) continue;
    SCOPED_TRACE(c.name);
    check_maps(c.spec);
    ++checked;
    latent += std::holds_alternative<MlaSpec>(c.spec.layers.front().attention);
    if (HasFailure()) return;
  }
  EXPECT_GT(checked, 5);
  EXPECT_GT(latent, 0);
}

// Without a sink a row is a distribution over the keys that the mask and the window leave.
TEST(AttentionMaps, RowsAreDistributionsOverWhatIsSeen) {
  ThreadPool pool(1);
  Arena arena;
  const ArchSpec spec = topology_spec("decoder", {{"attention", {{"num_attention_heads", 4}, {"sliding_window", 5}}}});
  const auto model = random_model(spec, false);
  const auto maps = attention_maps(*model, {pool, arena, nullptr}, random_ids(kTokens, spec.vocab_size, 1));
  ASSERT_EQ(maps.size(), 8u);
  for (const AttentionMap& map : maps) {
    ASSERT_EQ(map.tokens, kTokens);
    for (int64_t i = 0; i < kTokens; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < kTokens; ++j) {
        const float p = map.probabilities[static_cast<size_t>(i * kTokens + j)];
        EXPECT_EQ(p > 0, j <= i && i - j < 5) << i << " " << j;
        sum += static_cast<double>(p);
      }
      EXPECT_NEAR(sum, 1, tolerance::kFloat);
    }
  }
}

TEST(AttentionMaps, RefuseTextsThatAreNone) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  const auto model = random_model(topology_spec("decoder", {{"position", {{"kind", "rope"}}}}), false);
  const auto error = [&](const std::vector<int32_t>& ids) {
    return input_error([&] { attention_maps(*model, op, ids); });
  };
  EXPECT_THAT(error({}), HasSubstr("tokens: are none; give one at least"));
  EXPECT_THAT(error({3, 29, -1}), AllOf(HasSubstr("tokens[1]: token 29"), HasSubstr("tokens[2]: token -1")));
  // 8 maps of 5,792 rows are just below 2^28 elements.
  EXPECT_THAT(error(std::vector<int32_t>(5793)), HasSubstr("give at most 5792"));
}

AttentionMap map_of(int64_t tokens, const auto& probability) {
  AttentionMap map{.tokens = tokens, .probabilities = {}};
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) map.probabilities.push_back(static_cast<float>(probability(i, j)));
  }
  return map;
}

TEST(MapStatistics, OfEqualProbabilities) {
  const auto s =
      map_statistics(map_of(4, [](int64_t i, int64_t j) { return j <= i ? 1 / static_cast<double>(i + 1) : 0; }));
  EXPECT_NEAR(s.entropy, (std::log(2.0) + std::log(3.0) + std::log(4.0)) / 4, tolerance::kFloat);
  EXPECT_NEAR(s.distance, (0 + 0.5 + 1 + 1.5) / 4, tolerance::kFloat);
  EXPECT_NEAR(s.first_token, (1 / 2.0 + 1 / 3.0 + 1 / 4.0) / 3, tolerance::kFloat);
  EXPECT_NEAR(s.previous_token, (1 / 2.0 + 1 / 3.0 + 1 / 4.0) / 3, tolerance::kFloat);
}

TEST(MapStatistics, OfOneKeyARow) {
  const auto previous =
      map_statistics(map_of(5, [](int64_t i, int64_t j) { return j == std::max<int64_t>(i - 1, 0); }));
  EXPECT_EQ(previous.entropy, 0);
  EXPECT_DOUBLE_EQ(previous.distance, 4.0 / 5);
  EXPECT_DOUBLE_EQ(previous.first_token, 1.0 / 4);
  EXPECT_DOUBLE_EQ(previous.previous_token, 1);
  const auto next = map_statistics(map_of(3, [](int64_t i, int64_t j) { return j == std::min<int64_t>(i + 1, 2); }));
  EXPECT_DOUBLE_EQ(next.distance, 2.0 / 3);
  EXPECT_EQ(next.previous_token, 0);
  const auto alone = map_statistics(map_of(1, [](int64_t, int64_t) { return 1; }));
  EXPECT_EQ(alone.first_token, 0);
  EXPECT_EQ(alone.previous_token, 0);
}

}  // namespace
}  // namespace transept
