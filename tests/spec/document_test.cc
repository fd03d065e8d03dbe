// Reading and writing of spec documents: derived values, overrides, and every refusal with its path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "spec/arch_spec.h"
#include "spec/presets.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Json base() {
  return {{"vocab_size", 512},
          {"hidden_size", 64},
          {"max_position_embeddings", 128},
          {"attention", {{"num_attention_heads", 16}, {"num_key_value_heads", 4}}},
          {"ffn", {{"intermediate_size", 96}}},
          {"num_hidden_layers", 2}};
}

Json with_layers(Json layers) {
  Json d = base();
  d.erase("num_hidden_layers");
  d["layers"] = std::move(layers);
  return d;
}

std::string errors(const Json& document) {
  try {
    spec_from_json(document, "");
  } catch (const InputError& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return {};
}

size_t count_errors(const Json& document) {
  try {
    spec_from_json(document, "");
  } catch (const InputError& e) {
    return e.problems().size();
  }
  return 0;
}

const GqaSpec& gqa(const ArchSpec& spec, size_t layer) { return std::get<GqaSpec>(spec.layers.at(layer).attention); }

TEST(Document, DefaultsAndDerivedValues) {
  Json d = base();
  d["attention"].erase("num_key_value_heads");
  const ArchSpec spec = spec_from_json(d, "t");
  EXPECT_EQ(spec.name, "unnamed");
  EXPECT_EQ(gqa(spec, 1).num_key_value_heads, 16);
  EXPECT_EQ(gqa(spec, 1).head_dim, 4);
  EXPECT_EQ(spec.layers[0].ffn.kind, FfnKind::kSwiglu);
  EXPECT_EQ(spec.layers[0].placement, NormPlacement::kPre);
  EXPECT_TRUE(std::holds_alternative<RmsNormSpec>(spec.layers[0].norm));
  EXPECT_TRUE(std::holds_alternative<RopePosition>(spec.position));
  EXPECT_TRUE(spec.tie_word_embeddings);
}

TEST(Document, EveryKeyReachesItsMember) {
  const Json d = {
      {"name", "n"},
      {"description", "d"},
      {"topology", "decoder"},
      {"vocab_size", 7},
      {"hidden_size", 6},
      {"max_position_embeddings", 5},
      {"type_vocab_size", 2},
      {"scale_embedding", true},
      {"embedding_norm", true},
      {"tie_word_embeddings", false},
      {"head_transform", true},
      {"head_bias", true},
      {"logit_scale", 0.5},
      {"final_logit_softcap", 30},
      {"pooling", "cls"},
      {"pooler", true},
      {"dropout", 0.25},
      {"initializer_range", 0.5},
      {"norm",
       {{"kind", "layernorm"}, {"eps", 0.125}, {"bias", false}, {"elementwise_affine", true}, {"placement", "pre"}}},
      {"block", {{"form", "parallel_two_norms"}}},
      {"position",
       {{"kind", "rope"},
        {"theta", 3},
        {"partial_rotary_factor", 0.625},
        {"pairing", "interleaved"},
        {"scaling", {{"kind", "linear"}, {"factor", 2}}}}},
      {"attention",
       {{"kind", "gqa"},
        {"num_attention_heads", 4},
        {"num_key_value_heads", 2},
        {"head_dim", 10},
        {"scale", 0.75},
        {"sliding_window", 9},
        {"qkv_bias", true},
        {"output_bias", true},
        {"clip_qkv", 8},
        {"qk_norm", "layernorm"},
        {"qk_norm_scope", "all_heads"},
        {"logit_softcap", 50},
        {"sinks", true}}},
      {"ffn", {{"kind", "geglu"}, {"intermediate_size", 11}, {"bias", true}}},
      {"num_hidden_layers", 1}};
  const ArchSpec s = spec_from_json(d, "t");
  EXPECT_EQ(s.name, "n");
  EXPECT_EQ(s.description, "d");
  EXPECT_EQ(s.vocab_size, 7);
  EXPECT_EQ(s.hidden_size, 6);
  EXPECT_EQ(s.max_position_embeddings, 5);
  EXPECT_EQ(s.type_vocab_size, 2);
  EXPECT_TRUE(s.scale_embedding);
  EXPECT_TRUE(s.embedding_norm);
  EXPECT_FALSE(s.tie_word_embeddings);
  EXPECT_TRUE(s.head_transform);
  EXPECT_TRUE(s.head_bias);
  EXPECT_EQ(s.logit_scale, 0.5);
  EXPECT_EQ(s.final_logit_softcap, 30);
  EXPECT_EQ(s.pooling, Pooling::kCls);
  EXPECT_TRUE(s.pooler);
  EXPECT_EQ(s.layers[0].block.form, BlockForm::kParallelTwoNorms);
  EXPECT_EQ(s.dropout, 0.25);
  EXPECT_EQ(s.initializer_range, 0.5);
  const auto& norm = std::get<LayerNormSpec>(s.layers[0].norm);
  EXPECT_EQ(norm.eps, 0.125);
  EXPECT_FALSE(norm.bias);
  EXPECT_FALSE(std::get<LayerNormSpec>(s.final_norm).bias);
  EXPECT_EQ(s.layers[0].placement, NormPlacement::kPre);
  EXPECT_EQ(std::get<RopePosition>(s.position).theta, 3);
  const GqaSpec& a = gqa(s, 0);
  EXPECT_EQ(a.num_attention_heads, 4);
  EXPECT_EQ(a.num_key_value_heads, 2);
  EXPECT_EQ(a.head_dim, 10);
  EXPECT_EQ(a.scale, 0.75);
  EXPECT_EQ(a.sliding_window, 9);
  EXPECT_TRUE(a.qkv_bias);
  EXPECT_TRUE(a.output_bias);
  EXPECT_EQ(a.clip_qkv, 8);
  EXPECT_EQ(a.qk_norm, QkNorm::kLayernorm);
  EXPECT_EQ(a.qk_norm_scope, QkNormScope::kAllHeads);
  EXPECT_EQ(a.logit_softcap, 50);
  EXPECT_TRUE(a.sinks);
  EXPECT_EQ(s.layers[0].ffn.kind, FfnKind::kGeglu);
  EXPECT_EQ(s.layers[0].ffn.intermediate_size, 11);
  EXPECT_TRUE(s.layers[0].ffn.bias);
  EXPECT_EQ(spec_to_json(s), d) << "a document with every key is printed back as it was";
}

TEST(Document, LayersOverrideSingleKeys) {
  const ArchSpec s =
      spec_from_json(with_layers({{{"repeat", 2}, {"attention", {{"sliding_window", 8}}}},
                                  {{"ffn", {{"kind", "relu"}}}},
                                  {{"attention", {{"num_attention_heads", 8}}}, {"norm", {{"eps", 1e-3}}}}}),
                     "t");
  ASSERT_EQ(s.layers.size(), 4u);
  EXPECT_EQ(gqa(s, 1).sliding_window, 8);
  EXPECT_EQ(gqa(s, 1).num_key_value_heads, 4);
  EXPECT_EQ(gqa(s, 2).sliding_window, 0);
  EXPECT_EQ(s.layers[2].ffn.kind, FfnKind::kRelu);
  EXPECT_EQ(s.layers[2].ffn.intermediate_size, 96);
  EXPECT_EQ(gqa(s, 3).head_dim, 8) << "derived after the merge, not before";
  EXPECT_EQ(std::get<RmsNormSpec>(s.layers[3].norm).eps, 1e-3);
  EXPECT_EQ(std::get<RmsNormSpec>(s.final_norm).eps, 1e-5);
}

TEST(Document, AnotherKindStartsFromItsDefaults) {
  Json d = with_layers({{{"norm", {{"kind", "layernorm"}}}}, {{"norm", {{"kind", "rmsnorm"}}}}});
  d["norm"] = {{"eps", 1e-3}, {"placement", "post"}};
  const ArchSpec s = spec_from_json(d, "t");
  EXPECT_EQ(std::get<LayerNormSpec>(s.layers[0].norm).eps, 1e-5);
  EXPECT_EQ(s.layers[0].placement, NormPlacement::kPost) << "the placement is the block's, not the kind's";
  EXPECT_EQ(std::get<RmsNormSpec>(s.layers[1].norm).eps, 1e-3) << "the kind that stood already";
}

TEST(Document, WholeNumbersHoweverWritten) {
  Json d = base();
  d["hidden_size"] = 64.0;
  d["vocab_size"] = 5.12e2;
  EXPECT_EQ(spec_from_json(d, "t").hidden_size, 64);
  d["hidden_size"] = 64.5;
  EXPECT_THAT(errors(d), HasSubstr("hidden_size: got 64.5; allowed: an integer, at least 1 and at most 1048576"));
}

TEST(Document, AllProblemsAtOnce) {
  Json d = with_layers(
      {{{"repeat", 1}}, {{"repeat", 0}, {"attention", {{"head_dim", "64"}}}}, {{"positions", Json::object()}}, 7});
  d["vocab_size"] = true;
  d["hiden_size"] = 3;
  d["norm"] = {{"kind", "batchnorm"}};
  d["ffn"] = {{"kind", "swish"}, {"bias", 0}};
  d["position"] = {{"base", 5}};
  d["dropout"] = 1.0;
  d["topology"] = "stack";
  EXPECT_THAT(
      errors(d),
      AllOf(
          HasSubstr("vocab_size: got true; allowed: an integer, at least 2 and at most 16777216"),
          HasSubstr("hiden_size: is no known key; did you mean \"hidden_size\"?"),
          HasSubstr("norm.kind: got the string \"batchnorm\"; allowed: \"layernorm\", \"rmsnorm\""),
          HasSubstr("ffn.kind: got the string \"swish\"; allowed: \"relu\", \"relu_squared\", \"gelu\", \"gelu_tanh\", "
                    "\"silu\""),
          HasSubstr("ffn.bias: got 0; allowed: true or false"),
          HasSubstr("ffn.intermediate_size: is missing (features between the two projections); allowed: an integer, at "
                    "least 1"),
          HasSubstr("position.base: is no known key"),
          HasSubstr("dropout: got 1.0; allowed: a number, at least 0 and below 1"),
          HasSubstr("topology: got the string \"stack\"; allowed: \"decoder\", \"encoder\", \"encoder_decoder\"")));
  EXPECT_THAT(errors(d),
              AllOf(HasSubstr("layers[1].repeat: got 0; allowed: an integer, at least 1 and at most 4096"),
                    HasSubstr("layers[1].attention.head_dim: got the string \"64\"; allowed: an integer, at least 0"),
                    HasSubstr("layers[2].positions: is no known key; did you mean \"position\"?"),
                    HasSubstr("layers[3]: got 7; allowed: an object")));
}

Json encoder_decoder() {
  Json d = base();
  d.erase("num_hidden_layers");
  d["topology"] = "encoder_decoder";
  d["encoder"] = {{"num_hidden_layers", 3}, {"norm", {{"placement", "post"}}}};
  d["decoder"] = {{"layers", {{{"repeat", 2}}, {{"ffn", {{"bias", true}}}}}}};
  return d;
}

TEST(Document, TwoStacks) {
  const ArchSpec s = spec_from_json(encoder_decoder(), "t");
  ASSERT_EQ(s.encoder.layers.size(), 3u);
  ASSERT_EQ(s.layers.size(), 3u);
  EXPECT_EQ(s.encoder.layers[0].placement, NormPlacement::kPost) << "the stack's group lies over the document's";
  EXPECT_EQ(s.layers[0].placement, NormPlacement::kPre);
  EXPECT_TRUE(s.layers[2].ffn.bias);
  EXPECT_FALSE(s.encoder.layers[0].causal || s.encoder.layers[0].cross_attention);
  EXPECT_TRUE(s.layers[0].causal && s.layers[0].cross_attention);
  EXPECT_EQ(spec_to_json(spec_from_json(spec_to_json(s), "again")), spec_to_json(s));
}

TEST(Document, StacksWhereTheyBelong) {
  Json d = encoder_decoder();
  d["topology"] = "decoder";
  EXPECT_THAT(errors(d), AllOf(HasSubstr("encoder: is given, and the topology has one stack"),
                               HasSubstr("layers: is missing, and so is num_hidden_layers")));
  d = base();
  d["topology"] = "encoder_decoder";
  EXPECT_THAT(errors(d), AllOf(HasSubstr("num_hidden_layers: is given, and the topology has two stacks"),
                               HasSubstr("encoder: is missing"), HasSubstr("decoder: is missing")));
  d = encoder_decoder();
  d["decoder"]["layers"][1]["ffn"]["bias"] = 3;
  d["encoder"]["attention"] = {{"head_dim", -1}};
  d["encoder"]["depth"] = 3;
  EXPECT_THAT(errors(d),
              AllOf(HasSubstr("decoder.layers[1].ffn.bias: got 3"), HasSubstr("encoder.attention.head_dim: got -1"),
                    HasSubstr("encoder.depth: is no known key")));
  d = encoder_decoder();
  d["block"] = {{"form", "parallel"}};
  EXPECT_THAT(errors(d), HasSubstr("block.form: parallel sublayers in a decoder with cross-attention"));
}

TEST(Document, PatternsOfLayers) {
  const Json local = {{"repeat", 2}, {"attention", {{"sliding_window", 8}}}};
  Json d = with_layers({{{"repeat", 3}, {"layers", {local, {{"repeat", 1}}}}}, local});
  const ArchSpec s = spec_from_json(d, "t");
  ASSERT_EQ(s.layers.size(), 11u);
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(gqa(s, i).sliding_window, i % 3 == 2 ? 0 : 8) << i;
  d["layers"][0]["repeat"] = 1366;
  EXPECT_THAT(errors(d), HasSubstr("layers: more than 4096 layers in all"));
  d["layers"][0] = {{"layers", {{{"attention", {{"sliding_window", -1}}}}}}, {"ffn", {{"bias", true}}}};
  EXPECT_THAT(errors(d), AllOf(HasSubstr("layers[0].layers[0].attention.sliding_window: got -1"),
                               HasSubstr("layers[0].ffn: is no known key; give it inside of the entry's layers")));
}

TEST(Document, ParallelNeedsANormBefore) {
  Json d = base();
  d["block"] = {{"form", "parallel"}};
  EXPECT_EQ(spec_from_json(d, "t").layers[0].block.form, BlockForm::kParallel);
  for (const char* placement : {"post", "post_sublayer", "sandwich"}) {
    d["norm"] = {{"placement", placement}};
    EXPECT_THAT(errors(d), HasSubstr("block.form: parallel sublayers with a norm that is not before them"));
  }
}

TEST(Document, ANormWithoutWeightsHasNoBias) {
  Json d = base();
  d["norm"] = {{"kind", "layernorm"}, {"elementwise_affine", false}};
  const ArchSpec s = spec_from_json(d, "t");
  EXPECT_FALSE(std::get<LayerNormSpec>(s.final_norm).elementwise_affine);
  EXPECT_EQ(spec_to_json(spec_from_json(spec_to_json(s), "again")), spec_to_json(s));
  d["norm"]["bias"] = true;
  EXPECT_THAT(errors(d), HasSubstr("norm.bias: true, and elementwise_affine is false"));
}

TEST(Document, PositionsOnTheEmbeddingsAreTheStacks) {
  Json d = with_layers({{{"repeat", 3}}, {{"position", {{"kind", "none"}}}}});
  const ArchSpec s = spec_from_json(d, "t");
  EXPECT_TRUE(std::holds_alternative<NoPosition>(s.layers[3].position));
  EXPECT_TRUE(std::holds_alternative<RopePosition>(s.layers[0].position));
  d["layers"][1]["position"]["kind"] = "learned";
  EXPECT_THAT(errors(d),
              HasSubstr("layers[1].position.kind: of \"rope\" and \"learned\", one belongs to the whole stack"));
  d["layers"][1]["position"]["kind"] = "rope";
  d["position"] = {{"kind", "learned"}};
  EXPECT_THAT(errors(d),
              HasSubstr("layers[1].position.kind: of \"learned\" and \"rope\", one belongs to the whole stack"));
}

TEST(Document, OneProblemIsToldOnce) {
  Json d = base();
  d["num_hidden_layers"] = 100;
  d["attention"]["head_dim"] = -1;
  EXPECT_EQ(count_errors(d), 1u);
  d = base();
  d.erase("hidden_size");
  EXPECT_EQ(count_errors(d), 1u) << errors(d);
  d = base();
  d["attention"]["num_attention_heads"] = "sixteen";
  EXPECT_EQ(count_errors(d), 1u) << errors(d);
}

TEST(Document, HeadsAndGroups) {
  EXPECT_THAT(errors(with_layers({{{"repeat", 3}}, {{"attention", {{"num_key_value_heads", 6}}}}})),
              HasSubstr("layers[1].attention.num_key_value_heads: 6 does not divide num_attention_heads = 16; allowed: "
                        "1, 2, 4, 8, 16"));
  Json d = base();
  d["attention"]["num_key_value_heads"] = 32;
  EXPECT_THAT(errors(d), HasSubstr("attention.num_key_value_heads: 32 does not divide num_attention_heads = 16"));
  d = base();
  d["attention"] = {{"num_attention_heads", 7}};
  EXPECT_THAT(errors(d), HasSubstr("attention.num_attention_heads: 7 does not divide hidden_size = 64; give head_dim"));
  d["attention"]["head_dim"] = 10;
  EXPECT_EQ(errors(d), "");
  d["attention"]["head_dim"] = 9;
  EXPECT_THAT(errors(d), HasSubstr("attention.head_dim: 9 is odd, and rope rotates pairs"));
  d["position"] = {{"kind", "learned"}};
  EXPECT_EQ(errors(d), "");
}

TEST(Document, LatentAttention) {
  Json d = base();
  d["attention"] = {{"kind", "mla"}};
  EXPECT_THAT(
      errors(d),
      AllOf(HasSubstr("attention.num_attention_heads: is missing"), HasSubstr("attention.kv_lora_rank: is missing"),
            HasSubstr("attention.qk_nope_head_dim: is missing"), HasSubstr("attention.qk_rope_head_dim: is missing"),
            HasSubstr("attention.v_head_dim: is missing"), Not(HasSubstr("q_lora_rank"))));
  d["attention"] = {{"kind", "mla"},         {"num_attention_heads", 3}, {"kv_lora_rank", 20},
                    {"qk_nope_head_dim", 6}, {"qk_rope_head_dim", 4},    {"v_head_dim", 5}};
  ASSERT_EQ(errors(d), "") << "heads need not divide the width of the model";
  const auto spec = spec_from_json(d, "t");
  const auto& a = std::get<MlaSpec>(spec.layers[0].attention);
  EXPECT_EQ(a.q_lora_rank, 0);
  EXPECT_DOUBLE_EQ(a.score_scale(), 1 / std::sqrt(10.0));
  EXPECT_EQ(a.flops_per_query_key(), 2 * 3 * (10 + 5));

  Json wrong = d;
  wrong["attention"]["qk_rope_head_dim"] = 5;
  EXPECT_THAT(errors(wrong), HasSubstr("attention.qk_rope_head_dim: 5 is odd, and rope rotates pairs of elements"));
  wrong["position"] = {{"kind", "alibi"}};
  EXPECT_EQ(errors(wrong), "");
  wrong = d;
  wrong["position"] = {{"partial_rotary_factor", 0.5}};
  EXPECT_THAT(errors(wrong), HasSubstr("attention.kind: mla turns the part of its heads that is for it"));
  wrong = d;
  wrong["attention"]["head_dim"] = 16;
  EXPECT_THAT(errors(wrong), HasSubstr("attention.head_dim: is no known key; it is a key of the kind \"gqa\""));
  for (const char* key :
       {"num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
    wrong = d;
    wrong["attention"][key] = 1 << 30;
    wrong["attention"]["num_attention_heads"] = 1 << 30;
    EXPECT_THAT(errors(wrong), HasSubstr("attention.num_attention_heads: queries, keys and values are")) << key;
  }

  // An encoder may have it; a decoder beside one attends across, for which it has no form.
  Json two = d;
  two.erase("num_hidden_layers");
  two["topology"] = "encoder_decoder";
  const Json gqa = {{"kind", "gqa"}, {"num_attention_heads", 4}};
  two["encoder"] = {{"num_hidden_layers", 2}};
  two["decoder"] = {{"num_hidden_layers", 2}, {"attention", gqa}};
  EXPECT_EQ(errors(two), "");
  two["decoder"].erase("attention");
  EXPECT_THAT(errors(two), HasSubstr("attention.kind: \"mla\" in a decoder, which attends to its encoder too"));
}

TEST(Document, PlacesTheMistake) {
  Json d = base();
  d["sliding_window"] = 8;
  EXPECT_THAT(errors(d), HasSubstr("sliding_window: is no known key; it belongs into the group \"attention\""));
  d = base();
  d["norm"] = {{"bias", false}};
  EXPECT_THAT(errors(d), HasSubstr("norm.bias: is no known key; it is a key of the kind \"layernorm\""));
  d = base();
  d["attention"]["num_kv_heads"] = 8;
  EXPECT_THAT(errors(d), HasSubstr("attention.num_kv_heads: is no known key; did you mean"));
  d = base();
  d["attention"]["heads"] = 8;
  EXPECT_THAT(errors(d), HasSubstr("did you mean \"num_"));
}

TEST(Document, Layers) {
  Json d = base();
  d["layers"] = Json::array({Json::object()});
  EXPECT_THAT(errors(d), HasSubstr("num_hidden_layers: stands beside layers; give one of the two"));
  d.erase("layers");
  d.erase("num_hidden_layers");
  EXPECT_THAT(errors(d), HasSubstr("layers: is missing, and so is num_hidden_layers"));
  EXPECT_THAT(errors(with_layers(Json::array())),
              HasSubstr("layers: has 0 entries; allowed: a list of 1 to 4096 objects"));
  EXPECT_THAT(errors(with_layers({{"repeat", 2}})), HasSubstr("layers: got an object"));
  EXPECT_THAT(errors(with_layers({{{"repeat", 4096}}, Json::object()})),
              HasSubstr("layers: more than 4096 layers in all"));
  EXPECT_EQ(errors(with_layers({{{"repeat", 4095}}, Json::object()})), "");
  Json many = Json::array();
  for (int i = 0; i < 100000; ++i) many.push_back(Json::object());
  EXPECT_THAT(errors(with_layers(many)), HasSubstr("layers: has 100000 entries"));
}

TEST(Document, NumbersBeyondTheirType) {
  for (const Json& value :
       {Json(uint64_t{1} << 63), Json(std::numeric_limits<uint64_t>::max()), Json(std::numeric_limits<int64_t>::min()),
        Json(std::numeric_limits<int64_t>::max()), Json(1e30), Json(-1e30), Json(std::nan("")), Json(INFINITY),
        Json(9007199254740993.0), Json(nullptr), Json("1"), Json(Json::value_t::discarded), Json::binary({1, 2})}) {
    for (const char* key : {"vocab_size", "hidden_size", "max_position_embeddings", "num_hidden_layers"}) {
      Json d = base();
      d[key] = value;
      EXPECT_THAT(errors(d), HasSubstr(std::string(key) + ": got ")) << key;
    }
    for (const char* key : {"num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window"}) {
      Json d = base();
      d["attention"][key] = value;
      EXPECT_THAT(errors(d), HasSubstr(std::string("attention.") + key + ": got ")) << key;
    }
  }
  for (const Json& value :
       {Json(0), Json(-1), Json(std::nan("")), Json(INFINITY), Json(1e300), Json("1e-5"), Json(nullptr)}) {
    Json d = base();
    d["norm"] = {{"eps", value}};
    EXPECT_THAT(errors(d), HasSubstr("norm.eps: got "));
  }
}

TEST(Document, SizesThatDoNotFit) {
  Json d = base();
  d["attention"] = {{"num_attention_heads", 1 << 30}, {"head_dim", 1 << 30}};
  EXPECT_THAT(errors(d), HasSubstr("attention.num_attention_heads: queries, keys and values are"));
  d = base();
  d["ffn"]["intermediate_size"] = 1 << 30;
  EXPECT_THAT(errors(d), HasSubstr("ffn.intermediate_size: gate and up are 2147483648 wide"));
  d["ffn"]["kind"] = "relu";
  EXPECT_EQ(errors(d), "");
  d["hidden_size"] = 1 << 20;
  d["num_hidden_layers"] = 4096;
  EXPECT_THAT(errors(d), HasSubstr("the model has more than 2^53 parameters"));
}

TEST(Document, NotADocument) {
  for (const Json& d : {Json(), Json(1), Json("x"), Json::array(), Json(true)}) {
    EXPECT_THAT(errors(d), HasSubstr("allowed: an object"));
  }
  Json d = base();
  d["attention"] = 5;
  EXPECT_THAT(errors(d), HasSubstr("attention: got 5; allowed: an object"));
}

TEST(Document, BoundedWorkOnHostileInput) {
  Json d = base();
  for (int i = 0; i < 1000; ++i) d["key" + std::to_string(i)] = i;
  EXPECT_THAT(errors(d), HasSubstr("has 1006 keys; allowed: at most 256"));
  d = base();
  for (int i = 0; i < 200; ++i) d["attention"]["key" + std::to_string(i)] = i;
  EXPECT_EQ(count_errors(d), 65u);
  EXPECT_THAT(errors(d), HasSubstr("136 more problems"));
  const std::string big(1 << 20, 'k');
  d = base();
  d["num_hidden_layers"] = 4096;
  d["attention"][big] = big;
  d["attention"]["kind"] = big;
  d["name"] = std::string("\xff\xfe");
  EXPECT_LT(errors(d).size(), 2000u);
  EXPECT_THAT(errors(d), HasSubstr("name: got the string \"\\ufffd\\ufffd\"; allowed: a string in UTF-8"));
}

TEST(Document, WhereStandsInFront) {
  try {
    spec_from_json(Json::object(), "my.json");
    FAIL();
  } catch (const InputError& e) {
    for (const Problem& p : e.problems()) EXPECT_THAT(p.where, HasSubstr("my.json: "));
  }
}

TEST(Document, RoundTrip) {
  std::vector<ArchSpec> specs;
  for (const std::string& name : preset_names()) specs.push_back(preset(name));
  Json d = with_layers(
      {{{"repeat", 2}, {"attention", {{"sliding_window", 8}}}},
       {{"norm", {{"kind", "layernorm"}, {"eps", 0.1}}}, {"ffn", {{"kind", "gelu"}, {"intermediate_size", 5}}}},
       {{"repeat", 3}, {"norm", {{"placement", "post"}}}},
       {{"repeat", 1}, {"attention", {{"num_attention_heads", 2}, {"num_key_value_heads", 0}}}}});
  d["norm"] = {{"eps", 0.3}};
  specs.push_back(spec_from_json(d, "t"));
  for (const ArchSpec& spec : specs) {
    const Json written = spec_to_json(spec);
    const ArchSpec read = spec_from_json(written, "written");
    EXPECT_EQ(spec_to_json(read), written) << spec.name;
    ASSERT_EQ(read.layers.size(), spec.layers.size());
    const auto names = [](const ArchSpec& s) {
      std::string all;
      for (const ParamDecl& p : s.declare().decls()) {
        all += p.name + ":";
        for (const int64_t e : p.shape) all += std::to_string(e) + ",";
      }
      return all;
    };
    EXPECT_EQ(names(read), names(spec)) << spec.name;
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      const auto window = [](const auto& a) { return a.sliding_window; };
      EXPECT_EQ(std::visit(window, read.layers[i].attention), std::visit(window, spec.layers[i].attention));
      EXPECT_EQ(read.layers[i].placement, spec.layers[i].placement);
      EXPECT_EQ(read.layers[i].ffn.kind, spec.layers[i].ffn.kind);
    }
  }
  const Json written = spec_to_json(specs.back());
  ASSERT_EQ(written["layers"].size(), 4u) << written.dump(1);
  EXPECT_EQ(written["layers"][0], (Json{{"repeat", 2}})) << "the first layer's groups are the document's";
  EXPECT_EQ(written["layers"][2]["norm"], (Json{{"placement", "post"}}));
  EXPECT_FALSE(spec_to_json(preset("gpt2")).contains("layers"));
}

}  // namespace
}  // namespace transept
