// Position kinds and RoPE rules: documents, closed forms from the papers, and values of Hugging Face transformers
// 5.24 (modeling_rope_utils, modeling_t5, modeling_bloom, modeling_mpt).
#include "spec/position.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "spec/arch_spec.h"
#include "spec/extends.h"
#include "spec/presets.h"
#include "spec/schema_check.h"
#include "support/position_rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json document(Json position) {
  Json d = preset_document("small-1m");  // 4 heads of 32
  d["position"] = std::move(position);
  return d;
}

Json scaled(Json scaling) { return document({{"scaling", std::move(scaling)}}); }

std::string errors(const Json& d) {
  try {
    spec_from_json(d, "");
  } catch (const InputError& e) {
    return e.what();
  }
  return {};
}

template <class T>
T rule(const Json& d) {
  return std::get<T>(std::get<RopePosition>(spec_from_json(d, "t").position).scaling);
}

std::vector<double> list(size_t n, double first) {
  std::vector<double> all;
  for (size_t i = 0; i < n; ++i) all.push_back(first + static_cast<double>(i) / 8);
  return all;
}

// Every kind of position and of rule, with all keys away from their defaults.
std::vector<Json> every_position() {
  std::vector<Json> all = position_rows();
  for (const RopeRule& rule : rope_rule_rows()) {
    all.push_back({{"kind", "rope"},
                   {"theta", 500},
                   {"partial_rotary_factor", 0.5},
                   {"pairing", "interleaved"},
                   {"scaling", rule.stretched}});
  }
  return all;
}

TEST(PositionDocument, EveryKindIsReadAndPrintedBack) {
  const Json schema = spec_schema();
  std::set<std::string> kinds, rules;
  for (const Json& position : every_position()) {
    const Json d = document(position);
    EXPECT_EQ(spec_to_json(spec_from_json(d, "t"))["position"], position);
    EXPECT_TRUE(schema_accepts(schema, schema, d)) << position;
    kinds.insert(position["kind"].get<std::string>());
    if (position.contains("scaling")) rules.insert(position["scaling"]["kind"].get<std::string>());
  }
  EXPECT_EQ(kinds.size(), PositionKinds::kNames.size()) << "a kind without a row";
  EXPECT_EQ(rules.size(), RopeScalingKinds::kNames.size()) << "a rule without a row";
}

TEST(PositionDocument, Defaults) {
  const auto rope = std::get<RopePosition>(spec_from_json(document(Json::object()), "t").position);
  EXPECT_EQ(rope.partial_rotary_factor, 1);
  EXPECT_EQ(rope.pairing, RopePairing::kHalfSplit);
  EXPECT_TRUE(std::holds_alternative<NoScaling>(rope.scaling));
  const auto yarn =
      rule<YarnScaling>(scaled({{"kind", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 16}}));
  EXPECT_EQ(yarn.beta_fast, 32);
  EXPECT_EQ(yarn.beta_slow, 1);
  EXPECT_TRUE(yarn.truncate);
  EXPECT_EQ(rule<DynamicScaling>(scaled({{"kind", "dynamic"}, {"factor", 4}})).original_max_position_embeddings, 0);
}

TEST(PositionDocument, EveryProblemHasItsPath) {
  EXPECT_THAT(errors(scaled({{"kind", "yarn"}, {"factor", 0.5}, {"truncate", 1}, {"betafast", 3}})),
              AllOf(HasSubstr("position.scaling.factor: got 0.5; allowed: a number, at least 1"),
                    HasSubstr("position.scaling.original_max_position_embeddings: is missing (trained length); "
                              "allowed: an integer, at least 1"),
                    HasSubstr("position.scaling.truncate: got 1; allowed: true or false"),
                    HasSubstr("position.scaling.betafast: is no known key; did you mean \"beta_fast\"?")));
  EXPECT_THAT(errors(scaled({{"factor", 2}})),
              HasSubstr("position.scaling.factor: is no known key; it is a key of the kind \"linear\", \"ntk\", "));
  EXPECT_THAT(errors(scaled({{"kind", "yam"}})),
              HasSubstr("position.scaling.kind: got the string \"yam\"; allowed: \"none\", \"linear\", \"ntk\", "
                        "\"dynamic\", \"yarn\", \"llama3\", \"longrope\""));
  EXPECT_THAT(errors(scaled(3)), HasSubstr("position.scaling: got 3; allowed: an object"));
  EXPECT_THAT(errors(scaled(Json::array())), HasSubstr("position.scaling: got a list; allowed: an object"));
  EXPECT_THAT(errors(document({{"kind", "learned"}, {"scaling", Json::object()}})),
              HasSubstr("position.scaling: is no known key; it is a key of the kind \"rope\""));
  EXPECT_THAT(errors(document({{"partial_rotary_factor", 0}})), HasSubstr("position.partial_rotary_factor: got 0; "));
  EXPECT_THAT(errors(document({{"partial_rotary_factor", 1.5}})),
              HasSubstr("got 1.5; allowed: a number, above 0 and at most 1"));
  EXPECT_THAT(errors(document({{"pairing", "neox"}})), HasSubstr("allowed: \"half_split\", \"interleaved\""));
}

TEST(PositionDocument, Lists) {
  const auto longrope = [](Json shorts, Json longs) {
    return scaled({{"kind", "longrope"},
                   {"short_factor", std::move(shorts)},
                   {"long_factor", std::move(longs)},
                   {"original_max_position_embeddings", 64}});
  };
  const Json good = list(16, 1);
  EXPECT_EQ(errors(longrope(good, good)), "");
  EXPECT_EQ(rule<LongRopeScaling>(longrope(good, list(16, 3))).long_factor, list(16, 3));
  EXPECT_THAT(errors(longrope(list(15, 1), good)),
              HasSubstr("position.scaling.short_factor: has 15 entries for 16 pairs; give one for each pair"));
  EXPECT_THAT(errors(longrope(good, Json::array())),
              HasSubstr("position.scaling.long_factor: has 0 entries; allowed: a list of 1 to 4096 numbers"));
  EXPECT_THAT(errors(longrope(good, std::vector<double>(5000, 1))),
              HasSubstr("position.scaling.long_factor: has more than 4096 entries"));
  EXPECT_THAT(errors(longrope(3, good)), HasSubstr("position.scaling.short_factor: got 3; allowed: a list of 1 to"));
  Json bad = good;
  bad[3] = "1";
  EXPECT_THAT(errors(longrope(bad, good)), HasSubstr("position.scaling.short_factor[3]: got the string"));
  for (const Json& entry : {Json(0), Json(-1), Json(nullptr), Json(1e300), Json(std::nan("")), Json(Json::array())}) {
    bad[3] = entry;
    EXPECT_THAT(errors(longrope(good, bad)), HasSubstr("position.scaling.long_factor[3]: got ")) << entry;
  }
  Json missing = longrope(good, good);
  missing["position"]["scaling"].erase("long_factor");
  EXPECT_THAT(errors(missing), HasSubstr("position.scaling.long_factor: is missing (divisor of each pair's frequency"));
}

TEST(PositionDocument, HostileGroups) {
  Json many = Json::object();
  for (int i = 0; i < 300; ++i) many["key" + std::to_string(i)] = i;
  EXPECT_THAT(errors(scaled(many)), HasSubstr("position.scaling: has 300 keys; allowed: at most 256"));
  const std::string big(1 << 20, 'k');
  Json lists = {{"kind", "longrope"}, {big, 1}, {"original_max_position_embeddings", big}};
  for (int i = 0; i < 200; ++i) lists["list" + std::to_string(i)] = std::vector<double>(4096, 1);
  EXPECT_LT(errors(scaled(lists)).size(), 20000u);
  Json deep = Json::object();
  for (int i = 0; i < 50; ++i) deep = {{"scaling", deep}};
  EXPECT_THAT(errors(document(deep)), HasSubstr("position.scaling.scaling: is no known key"));
}

TEST(PositionDocument, ConditionsThatJoinKeys) {
  EXPECT_THAT(errors(document({{"partial_rotary_factor", 0.3}})),
              HasSubstr("position.partial_rotary_factor: 9 of the 32 elements of a head would turn"));
  EXPECT_THAT(errors(document({{"partial_rotary_factor", 0.03}})), HasSubstr("0 of the 32 elements"));
  EXPECT_EQ(errors(document({{"partial_rotary_factor", 0.25}})), "");
  Json odd = document({{"kind", "sinusoidal"}});
  odd["hidden_size"] = 129;
  odd["attention"]["head_dim"] = 32;
  EXPECT_THAT(errors(odd), HasSubstr("position.kind: sinusoidal pairs a sine with a cosine, and hidden_size = 129"));
  const Json yarn = {{"kind", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 16}, {"beta_fast", 0.5}};
  EXPECT_THAT(errors(scaled(yarn)), HasSubstr("position.scaling.beta_fast: is below beta_slow"));
  EXPECT_THAT(errors(document({{"theta", 1}, {"scaling", yarn}})), HasSubstr("position.theta: yarn divides pairs"));
  EXPECT_THAT(
      errors(scaled(
          {{"kind", "llama3"}, {"factor", 4}, {"original_max_position_embeddings", 16}, {"high_freq_factor", 1}})),
      HasSubstr("position.scaling.high_freq_factor: is not above low_freq_factor"));
  EXPECT_THAT(errors(document({{"kind", "t5"}, {"num_buckets", 7}})), HasSubstr("position.num_buckets: 7 is odd"));
  EXPECT_THAT(errors(document({{"kind", "t5"}, {"num_buckets", 32}, {"max_distance", 16}})),
              HasSubstr("position.max_distance: 16 is within the first half of the buckets"));
  Json heads = document({{"kind", "t5"}});
  heads.erase("num_hidden_layers");
  heads["layers"] = {Json::object(), {{"attention", {{"num_attention_heads", 2}, {"num_key_value_heads", 0}}}}};
  EXPECT_THAT(errors(heads), HasSubstr("position.kind: t5 has one table of biases for all layers, and layers have 4 "
                                       "and 2 heads"));
}

TEST(PositionDocument, NestedGroupsMerge) {
  const GroupRule& position =
      *std::find_if(group_rules().begin(), group_rules().end(), [](const GroupRule& r) { return r.key == "position"; });
  const Json yarn = {{"kind", "yarn"}, {"factor", 4}, {"beta_fast", 9}};
  const Json base = {{"theta", 5}, {"scaling", yarn}};
  const auto merged = [&](const Json& scaling) {
    return merge_group(position, base, {{"scaling", scaling}})["scaling"];
  };
  EXPECT_EQ(merged({{"factor", 8}}), (Json{{"kind", "yarn"}, {"factor", 8}, {"beta_fast", 9}}));
  EXPECT_EQ(merged({{"kind", "yarn"}, {"factor", 8}}), (Json{{"kind", "yarn"}, {"factor", 8}, {"beta_fast", 9}}));
  EXPECT_EQ(merged({{"kind", "ntk"}, {"factor", 8}}), (Json{{"kind", "ntk"}, {"factor", 8}})) << "starts fresh";
  EXPECT_EQ(merged({{"kind", "none"}}), (Json{{"kind", "none"}}));
  EXPECT_EQ(merge_group(position, base, {{"theta", 7}}), (Json{{"theta", 7}, {"scaling", yarn}}));
  EXPECT_EQ(merge_group(position, base, {{"kind", "alibi"}}), (Json{{"kind", "alibi"}}));
  EXPECT_EQ(merge_group(position, {{"theta", 5}}, {{"scaling", yarn}}), (Json{{"theta", 5}, {"scaling", yarn}}));
  EXPECT_EQ(merged(3), Json(3)) << "left for the reader to refuse";

  const Json over = {{"extends", "small-1m"}, {"position", {{"scaling", {{"kind", "linear"}, {"factor", 2}}}}}};
  EXPECT_EQ(rule<LinearScaling>(over).factor, 2);
  const Json schema = spec_schema();
  EXPECT_TRUE(schema_accepts(schema, schema, over));
  EXPECT_TRUE(schema_accepts(schema, schema, {{"extends", "small-1m"}, {"position", {{"scaling", {{"factor", 2}}}}}}));
}

TEST(PositionDocument, SchemaAgreesOnNestedGroups) {
  const Json schema = spec_schema();
  const Json good = list(16, 1);
  const std::pair<Json, bool> cases[] = {
      {Json::object(), true},
      {{{"kind", "none"}}, true},
      {{{"kind", "linear"}, {"factor", 2}}, true},
      {{{"kind", "linear"}}, false},
      {{{"kind", "linear"}, {"factor", 0.5}}, false},
      {{{"kind", "linear"}, {"factor", 2}, {"beta_fast", 1}}, false},
      {{{"factor", 2}}, false},
      {{{"kind", "yarn"}, {"factor", 2}}, false},
      {{{"kind", "longrope"}, {"short_factor", good}, {"long_factor", good}, {"original_max_position_embeddings", 2}},
       true},
      {{{"kind", "longrope"}, {"short_factor", good}, {"original_max_position_embeddings", 2}}, false},
      {{{"kind", "longrope"},
        {"short_factor", good},
        {"long_factor", Json::array()},
        {"original_max_position_embeddings", 2}},
       false},
      {{{"kind", "longrope"}, {"short_factor", good}, {"long_factor", {1, 0}}, {"original_max_position_embeddings", 2}},
       false},
      {7, false},
  };
  for (const auto& [scaling, accepted] : cases) {
    EXPECT_EQ(schema_accepts(schema, schema, scaled(scaling)), accepted) << "schema: " << scaling;
    EXPECT_EQ(errors(scaled(scaling)).empty(), accepted) << "reader: " << scaling;
  }
}

// A layer may give what the document's own group leaves out.
TEST(PositionDocument, LayersCompleteNestedGroups) {
  Json d = scaled({{"kind", "linear"}});
  d.erase("num_hidden_layers");
  d["layers"] = {{{"position", {{"scaling", {{"factor", 2}}}}}}, {{"position", {{"scaling", {{"kind", "none"}}}}}}};
  const Json schema = spec_schema();
  EXPECT_TRUE(schema_accepts(schema, schema, d));
  const ArchSpec spec = spec_from_json(d, "t");
  const auto scaling = [&](size_t layer) { return std::get<RopePosition>(spec.layers[layer].position).scaling; };
  EXPECT_EQ(std::get<LinearScaling>(scaling(0)).factor, 2);
  EXPECT_TRUE(std::holds_alternative<NoScaling>(scaling(1)));
  d["layers"].push_back({{"repeat", 1}});
  EXPECT_THAT(errors(d), HasSubstr("position.scaling.factor: is missing"));
  d["layers"][2] = {{"position", {{"scaling", {{"factor", 0.5}, {"base", 1}}}}}};
  EXPECT_THAT(errors(d), AllOf(HasSubstr("layers[2].position.scaling.factor: got 0.5"),
                               HasSubstr("layers[2].position.scaling.base: is no known key")));
}

TEST(PositionDeclare, OneTableForAllLayers) {
  ArchSpec spec = spec_from_json(document({{"kind", "t5"}, {"num_buckets", 8}, {"max_distance", 16}}), "t");
  const auto decls = spec.declare().decls();
  EXPECT_EQ(decls[1].name, "position.bias");
  EXPECT_EQ(decls[1].shape, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(decls[1].part, Part::kPosition);
  for (const char* kind : {"none", "sinusoidal", "rope", "alibi"}) {
    EXPECT_EQ(spec_from_json(document({{"kind", kind}}), "t").declare().decls()[1].part, Part::kNorm) << kind;
  }
}

// ---- formulas

constexpr RopeQuery kQuery{.theta = 10000, .rotated = 16, .length = 100, .max_position_embeddings = 64};

void expect_near(const RopeAngles& got, const std::vector<double>& inv_freq, double amplitude, double bound) {
  ASSERT_EQ(got.inv_freq.size(), inv_freq.size());
  for (size_t i = 0; i < inv_freq.size(); ++i)
    EXPECT_NEAR(got.inv_freq[i], inv_freq[i], bound * inv_freq[i]) << "pair " << i;
  EXPECT_NEAR(got.amplitude, amplitude, bound * amplitude);
}

// The rule of a row, as a document gives it to a head of 16 elements.
RopeAngles angles_of(const Json& scaling, int64_t length) {
  Json d = scaled(scaling);
  d["position"]["theta"] = kQuery.theta;
  d["position"]["partial_rotary_factor"] = 0.5;
  return std::get<RopePosition>(spec_from_json(d, "t").position)
      .angles(2 * kQuery.rotated, length, kQuery.max_position_embeddings);
}

TEST(RopeScaling, NeutralIsNone) {
  for (const RopeRule& rule : rope_rule_rows()) {
    SCOPED_TRACE(rule.neutral);
    for (const int64_t length : {int64_t{1}, int64_t{32}, int64_t{33}, int64_t{1000}}) {
      // Dynamic NTK with factor 1 still follows the length: (1 * L / L' - 0).
      if (rule.neutral["kind"] == "dynamic" && length > 32) continue;
      expect_near(angles_of(rule.neutral, length), plain_inv_freq(kQuery.theta, kQuery.rotated), 1, tolerance::kDouble);
    }
  }
}

// And one that stretches does something: an identity would pass the test above.
TEST(RopeScaling, StretchedIsNotNone) {
  const double plain = plain_inv_freq(kQuery.theta, kQuery.rotated).back();
  for (const RopeRule& rule : rope_rule_rows()) {
    EXPECT_EQ(angles_of(rule.stretched, kQuery.length).inv_freq.back() < plain / 3, rule.stretched["kind"] != "none")
        << rule.stretched;
  }
}

TEST(RopeScaling, NtkBase) {
  NtkScaling ntk;
  ntk.factor = 4;
  // theta * s^(d / (d - 2)): the first frequency stays, the last is divided by s.
  const double theta = 10000 * std::pow(4, 16.0 / 14);
  expect_near(ntk.angles(kQuery), plain_inv_freq(theta, 16), 1, tolerance::kDouble);
  const std::vector<double> plain = plain_inv_freq(10000, 16), got = ntk.angles(kQuery).inv_freq;
  EXPECT_EQ(got.front(), 1);
  EXPECT_NEAR(got.back(), plain.back() / 4, tolerance::kDouble);
  RopeQuery pair = kQuery;
  pair.rotated = 2;  // d - 2 = 0
  EXPECT_EQ(ntk.angles(pair).inv_freq, (std::vector<double>{1}));
}

TEST(RopeScaling, YarnBandsAndTemperature) {
  YarnScaling yarn;
  yarn.factor = 8;
  yarn.original_max_position_embeddings = 2048;
  RopeQuery query = kQuery;
  query.rotated = 128;
  for (const bool truncate : {true, false}) {
    yarn.truncate = truncate;
    const RopeAngles got = yarn.angles(query);
    const std::vector<double> plain = plain_inv_freq(10000, 128);
    int kept = 0, divided = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      const double turns = 2048 * plain[i] / (2 * std::numbers::pi), share = got.inv_freq[i] / plain[i];
      // Rounding outwards widens the ramp by up to a pair on either side.
      const double pair = truncate ? plain[0] / plain[1] : 1;
      if (turns > 32 * pair) {
        EXPECT_EQ(share, 1) << i;
        ++kept;
      }
      if (turns * pair < 1) {
        EXPECT_NEAR(share, 1.0 / 8, tolerance::kDouble) << i;
        ++divided;
      }
      if (i > 0) {
        EXPECT_LE(share, got.inv_freq[i - 1] / plain[i - 1]) << "the ramp falls";
      }
    }
    EXPECT_GT(kept, 10);
    EXPECT_GT(divided, 10);
    EXPECT_NEAR(got.amplitude, 0.1 * std::log(8) + 1, tolerance::kDouble);
  }
  // DeepSeek-V2: what it takes from the amplitude it gives to the scores.
  EXPECT_EQ(yarn.angles(query).score_factor, 1);
  yarn.mscale = 0.5, yarn.mscale_all_dim = 0.7;
  EXPECT_NEAR(yarn.angles(query).amplitude, (0.05 * std::log(8) + 1) / (0.07 * std::log(8) + 1), tolerance::kDouble);
  EXPECT_NEAR(yarn.angles(query).score_factor, std::pow(0.07 * std::log(8) + 1, 2), tolerance::kDouble);
  yarn.attention_factor = 1;
  EXPECT_EQ(yarn.angles(query).amplitude, 1) << "an explicit factor is taken, 1 too";
}

TEST(RopeScaling, Llama3Bands) {
  Llama3Scaling rule;
  rule.factor = 8;
  rule.original_max_position_embeddings = 256;
  const std::vector<double> plain = plain_inv_freq(10000, 16), got = rule.angles(kQuery).inv_freq;
  int kept = 0, divided = 0, between = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi / plain[i], share = got[i] / plain[i];
    if (wavelength < 256.0 / 4) {
      ++kept;
      EXPECT_EQ(share, 1);
    } else if (wavelength > 256) {
      ++divided;
      EXPECT_NEAR(share, 1.0 / 8, tolerance::kDouble);
    } else {
      ++between;
      const double smooth = (256 / wavelength - 1) / (4 - 1);
      EXPECT_NEAR(share, (1 - smooth) / 8 + smooth, tolerance::kDouble);
    }
  }
  EXPECT_TRUE(kept > 0 && divided > 0 && between > 0);
}

TEST(RopeScaling, LengthDecidesAndLeavesNoState) {
  DynamicScaling dynamic;
  dynamic.factor = 2;
  const auto at = [&](int64_t length) {
    return dynamic.angles({.theta = 10000, .rotated = 8, .length = length, .max_position_embeddings = 8}).inv_freq;
  };
  EXPECT_EQ(at(6), plain_inv_freq(10000, 8));
  EXPECT_EQ(at(8), plain_inv_freq(10000, 8));
  EXPECT_LT(at(9).back(), at(8).back());
  dynamic.original_max_position_embeddings = 12;
  EXPECT_EQ(at(12), plain_inv_freq(10000, 8)) << "the trained length is not the longest one";
}

// A bug case each: B03, B04, B05, and variants; computed in float32 by transformers.
TEST(RopeScaling, ValuesOfTransformers) {
  const auto rope = [](double theta, double partial, RopeScaling rule) {
    return RopePosition{.theta = theta, .partial_rotary_factor = partial, .scaling = std::move(rule)};
  };
  const auto yarn = [](double factor, int64_t original) {
    YarnScaling r;
    r.factor = factor, r.original_max_position_embeddings = original;
    return r;
  };
  // B03
  expect_near(rope(10000, 1, yarn(4, 16)).angles(4, 1, 64), {1, 0.0025}, 1.138629436111989, tolerance::kFloat);
  const std::vector<double> larger{1,      0.197642356,    0.025,   0.00790569466,
                                   0.0025, 0.000790569466, 0.00025, 7.90569466e-05};
  expect_near(rope(10000, 1, yarn(4, 32)).angles(16, 1, 128), larger, 1.138629436111989, tolerance::kFloat);
  YarnScaling variant = yarn(4, 32);
  variant.mscale = 1, variant.mscale_all_dim = 0.707;
  expect_near(rope(10000, 1, variant).angles(16, 1, 128), larger, 1.036992729910394, tolerance::kFloat);
  variant = yarn(4, 16);
  variant.attention_factor = 1;
  expect_near(rope(10000, 1, variant).angles(4, 1, 64), {1, 0.0025}, 1, tolerance::kFloat);
  variant = yarn(4, 512);
  variant.beta_fast = 8, variant.beta_slow = 2;
  const auto ramp = [](double middle) {
    return std::vector<double>{1, 0.316227764, 0.1, middle, 0.0025, 0.000790569466, 0.00025, 7.90569466e-05};
  };
  expect_near(rope(10000, 1, variant).angles(16, 1, 128), ramp(0.0197642371), 1.138629436111989, tolerance::kFloat);
  variant.truncate = false;
  expect_near(rope(10000, 1, variant).angles(16, 1, 128), ramp(0.0122413188), 1.138629436111989, tolerance::kFloat);
  expect_near(rope(1e6, 0.5, yarn(8, 1024)).angles(32, 1, 4096),
              {1, 0.125961453, 0.0131761581, 0.000702926656, 0.000125, 2.22284925e-05, 3.95284678e-06, 7.02926684e-07},
              1.2079441541679836, tolerance::kFloat);
  // B04: the full layers and the sliding ones
  LinearScaling linear;
  linear.factor = 8;
  expect_near(rope(1e6, 1, linear).angles(4, 1, 64), {0.125, 0.000125}, 1, tolerance::kFloat);
  expect_near(rope(1e4, 1, NoScaling{}).angles(4, 1, 64), {1, 0.01}, 1, tolerance::kFloat);
  // B05
  DynamicScaling dynamic;
  dynamic.factor = 2;
  expect_near(rope(10000, 1, dynamic).angles(8, 12, 8), {1, 0.079370052, 0.0062996051, 0.0005}, 1, tolerance::kFloat);
  expect_near(rope(10000, 1, dynamic).angles(8, 6, 8), {1, 0.1, 0.01, 0.001}, 1, tolerance::kFloat);
  Llama3Scaling llama3;
  llama3.factor = 8, llama3.original_max_position_embeddings = 256;
  expect_near(
      rope(500000, 1, llama3).angles(16, 1, 131072),
      {1, 0.193922758, 0.0105382307, 0.000911583134, 0.000176776681, 3.42810235e-05, 6.64786967e-06, 1.28917316e-06}, 1,
      tolerance::kFloat);
  LongRopeScaling longrope;
  longrope.short_factor = {1, 1.1, 1.25, 1.5}, longrope.long_factor = {1, 2, 4, 7.5};
  longrope.original_max_position_embeddings = 64;
  expect_near(rope(10000, 1, longrope).angles(8, 64, 512), {1, 0.0909090936, 0.008, 0.00066666666}, 1.224744871391589,
              tolerance::kFloat);
  expect_near(rope(10000, 1, longrope).angles(8, 65, 512), {1, 0.05, 0.0025, 0.000133333335}, 1.224744871391589,
              tolerance::kFloat);
}

TEST(Alibi, SlopesOfAnyHeadCount) {
  // B16. BLOOM and MPT order the heads alike.
  const auto expect = [](double max_bias, int64_t heads, std::vector<double> exponents) {
    const std::vector<double> got = AlibiPosition{max_bias}.slopes(heads);
    ASSERT_EQ(got.size(), exponents.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], std::exp2(-exponents[i]), tolerance::kDouble) << i;
  };
  expect(8, 6, {2, 4, 6, 8, 1, 3});
  expect(8, 8, {1, 2, 3, 4, 5, 6, 7, 8});
  expect(8, 12, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5});
  expect(4, 6, {1, 2, 3, 4, 0.5, 1.5});
  expect(8, 1, {8});
  expect(8, 3, {4, 8, 2});
}

TEST(T5, BucketsByDistance) {
  // B17: key - query, bidirectional, causal.
  const int64_t away[] = {-128, -64, -20, -16, -15, -8, -7, -1, 0, 1, 7, 8, 15, 16, 20, 64, 127};
  const int64_t both[] = {15, 14, 10, 10, 9, 8, 7, 1, 0, 17, 23, 24, 25, 26, 26, 30, 31};
  const int64_t causal[] = {31, 26, 17, 16, 15, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const T5Position t5;
  for (size_t i = 0; i < std::size(away); ++i) {
    EXPECT_EQ(t5.bucket(-away[i], false), both[i]) << away[i];
    EXPECT_EQ(t5.bucket(-away[i], true), causal[i]) << away[i];
  }
  const T5Position small{.num_buckets = 8, .max_distance = 16};
  for (int64_t key = 0; key < 6; ++key) {
    EXPECT_EQ(small.bucket(0 - key, false), (std::vector<int64_t>{0, 5, 6, 6, 6, 6})[static_cast<size_t>(key)]);
    EXPECT_EQ(small.bucket(5 - key, false), (std::vector<int64_t>{2, 2, 2, 2, 1, 0})[static_cast<size_t>(key)]);
    EXPECT_EQ(small.bucket(5 - key, true), (std::vector<int64_t>{4, 4, 3, 2, 1, 0})[static_cast<size_t>(key)]);
  }
}

TEST(T5, BucketsAreOrderedAndAllUsed) {
  for (const T5Position t5 : {T5Position{}, T5Position{2, 2}, T5Position{4, 3}, T5Position{6, 5}, T5Position{8, 1000},
                              T5Position{64, 33}, T5Position{65536, 1 << 30}}) {
    for (const bool causal : {true, false}) {
      const int64_t side = causal ? t5.num_buckets : t5.num_buckets / 2;
      int64_t last = 0;
      for (int64_t away = 0; away < 4000; ++away) {
        const int64_t b = t5.bucket(away, causal);
        EXPECT_TRUE(b == last || b > last) << away;
        EXPECT_LT(b, side);
        if (!causal && away > 0) {
          EXPECT_EQ(t5.bucket(-away, false), b + side) << "keys after the query mirror those before";
        }
        last = b;
      }
      EXPECT_EQ(t5.bucket(t5.max_distance, causal), side - 1);
      EXPECT_EQ(t5.bucket(int64_t{1} << 40, causal), side - 1);
    }
  }
}

}  // namespace
}  // namespace transept
