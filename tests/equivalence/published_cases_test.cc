// Public bug reports on positions, masks and score options, and tiny models of many families, against transformers: the
// last logits by one pass, through the cache token by token and in chunks, what each usual mistake would give, and the
// gradients of every tensor (tests/goldens/bugs/published{,_training}.json, written by tools/goldens/published.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "convert/kv_heads.h"
#include "convert/model_folder.h"
#include "equivalence/hashed_model.h"
#include "infer/decoder.h"
#include "kernels/router.h"
#include "ops/norm.h"
#include "support/compare.h"
#include "support/goldens.h"
#include "support/tolerances.h"
#include "train/trainer.h"

namespace transept {
namespace {

const Json& published() {
  static const Json all = parse_json(read_file(goldens() / "bugs/published.json", 1 << 20), "published.json");
  return all;
}

const Json& published_training() {
  static const Json all =
      parse_json(read_file(goldens() / "bugs/published_training.json", 1 << 20), "published_training.json");
  return all;
}

// `base` with `patch` laid over it, group by group.
Json with(Json base, const Json& patch) {
  base.merge_patch(patch);
  return base;
}

Json llama() {
  return {{"vocab_size", 32},
          {"hidden_size", 16},
          {"max_position_embeddings", 64},
          {"tie_word_embeddings", false},
          {"norm", {{"kind", "rmsnorm"}, {"eps", 1e-6}}},
          {"position", {{"kind", "rope"}, {"theta", 10000}}},
          {"attention", {{"kind", "gqa"}, {"num_attention_heads", 4}, {"num_key_value_heads", 2}}},
          {"ffn", {{"kind", "swiglu"}, {"intermediate_size", 24}}},
          {"num_hidden_layers", 2}};
}

Json scaled(const Json& scaling) { return {{"position", {{"scaling", scaling}}}}; }

Json yarn() { return {{"kind", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 16}}; }

Json gemma() {
  return with(llama(), {{"tie_word_embeddings", true},
                        {"scale_embedding", true},
                        {"norm", {{"unit_offset", true}}},
                        {"attention", {{"head_dim", 4}}},
                        {"ffn", {{"kind", "geglu"}}}});
}

// Layers of a window of 4 and without one by turns; `sliding` and `full` are the position groups.
Json gemma_by_turns(const Json& sliding, const Json& full) {
  Json d = with(gemma(), {{"norm", {{"placement", "sandwich"}}}, {"num_hidden_layers", nullptr}});
  d["layers"] = {{{"position", sliding}, {"attention", {{"sliding_window", 4}}}}, {{"position", full}}};
  return d;
}

Json gemma3(double sliding_theta, double sliding_factor, double full_factor) {
  const auto group = [](double theta, double factor) {
    return Json{{"theta", theta}, {"scaling", {{"kind", "linear"}, {"factor", factor}}}};
  };
  return with(gemma_by_turns(group(sliding_theta, sliding_factor), group(1e6, full_factor)),
              {{"attention", {{"qk_norm", "rmsnorm"}}}});
}

// Biases everywhere, LayerNorm, GELU by tanh.
Json biased(int64_t hidden, int64_t heads, const Json& position) {
  return {{"vocab_size", 32},
          {"hidden_size", hidden},
          {"max_position_embeddings", 64},
          {"norm", {{"kind", "layernorm"}, {"eps", 1e-5}}},
          {"position", position},
          {"attention", {{"num_attention_heads", heads}, {"qkv_bias", true}, {"output_bias", true}}},
          {"ffn", {{"kind", "gelu_tanh"}, {"intermediate_size", 4 * hidden}, {"bias", true}}},
          {"num_hidden_layers", 2}};
}

Json bloom() { return with(biased(24, 6, {{"kind", "alibi"}}), {{"embedding_norm", true}}); }

Json mpt() {
  return with(biased(24, 6, {{"kind", "alibi"}}), {{"norm", {{"bias", false}}},
                                                   {"attention", {{"qkv_bias", false}, {"output_bias", false}}},
                                                   {"ffn", {{"kind", "gelu"}, {"bias", false}}}});
}

Json gpt2() { return with(biased(16, 2, {{"kind", "learned"}}), {{"max_position_embeddings", 16}}); }

Json t5() {
  Json d = {{"vocab_size", 32},
            {"topology", "encoder_decoder"},
            {"hidden_size", 16},
            {"max_position_embeddings", 64},
            {"logit_scale", 0.25},
            {"norm", {{"kind", "rmsnorm"}, {"eps", 1e-6}}},
            {"position", {{"kind", "t5"}, {"num_buckets", 8}, {"max_distance", 16}}},
            {"attention", {{"num_attention_heads", 4}, {"scale", 1}}},
            {"ffn", {{"kind", "relu"}, {"intermediate_size", 24}}}};
  for (const char* stack : {"encoder", "decoder"}) d[stack] = {{"num_hidden_layers", 2}};
  return d;
}

Json bert() {
  return with(biased(16, 4, {{"kind", "learned"}}), {{"topology", "encoder"},
                                                     {"type_vocab_size", 2},
                                                     {"embedding_norm", true},
                                                     {"head_transform", true},
                                                     {"head_bias", true},
                                                     {"norm", {{"eps", 1e-12}, {"placement", "post"}}},
                                                     {"ffn", {{"kind", "gelu"}, {"intermediate_size", 24}}}});
}

Json bart() {
  Json d =
      with(biased(16, 4, {{"kind", "learned"}, {"offset", 2}}), {{"topology", "encoder_decoder"},
                                                                 {"embedding_norm", true},
                                                                 {"norm", {{"placement", "post"}}},
                                                                 {"ffn", {{"kind", "gelu"}, {"intermediate_size", 24}}},
                                                                 {"num_hidden_layers", nullptr}});
  for (const char* stack : {"encoder", "decoder"}) d[stack] = {{"num_hidden_layers", 2}};
  return d;
}

Json deepseek(int64_t q_lora_rank, const Json& scaling) {
  Json d = with(llama(), {{"position", {{"pairing", "interleaved"}, {"scaling", scaling}}}});
  d["attention"] = {{"kind", "mla"},
                    {"num_attention_heads", 4},
                    {"q_lora_rank", q_lora_rank},
                    {"kv_lora_rank", 8},
                    {"qk_nope_head_dim", 6},
                    {"qk_rope_head_dim", 4},
                    {"v_head_dim", 5},
                    {"bias", false}};
  return d;
}

struct Published {
  std::string name;  // in published.json
  Json right;
  std::vector<std::pair<std::string, Json>> wrong;  // the mistake's name there
};

std::ostream& operator<<(std::ostream& out, const Published& c) { return out << c.name; }

std::vector<Published> published_specs() {
  const Json dynamic =
      with(llama(), with({{"max_position_embeddings", 8}}, scaled({{"kind", "dynamic"}, {"factor", 2}})));
  Json factor_1 = yarn();
  factor_1["attention_factor"] = 1;
  const Json window = with(llama(), {{"attention", {{"sliding_window", 4}}}});
  const Json plain = {{"theta", 10000}};
  const Json caps =
      with(gemma_by_turns(plain, plain), {{"final_logit_softcap", 2}, {"attention", {{"logit_softcap", 1}}}});
  const Json no_cap = {{"attention", {{"logit_softcap", 0}}}}, no_final_cap = {{"final_logit_softcap", 0}};
  const Json none = {{"kind", "none"}};
  const auto yarn_mscales = [](double mscale, double all_dim) {
    return with(yarn(), {{"mscale", mscale}, {"mscale_all_dim", all_dim}});
  };
  const Json biased_yarn = with(deepseek(12, yarn_mscales(0.7, 0.9)), {{"attention", {{"bias", true}}}});
  const double amplitude = (0.07 * std::log(4) + 1) / (0.09 * std::log(4) + 1);
  const Json wide = with(gemma(), {{"hidden_size", 40}});
  return {
      {"control", llama(), {}},
      {"yarn", with(llama(), scaled(yarn())), {{"no scaling", llama()}}},
      {"yarn_attention_factor", with(llama(), scaled(factor_1)), {{"computed factor", with(llama(), scaled(yarn()))}}},
      {"gemma3_two_tables",
       gemma3(1e4, 1, 8),
       {{"no factor", gemma3(1e4, 1, 1)}, {"factor on both", gemma3(1e4, 8, 8)}, {"one theta", gemma3(1e6, 1, 8)}}},
      {"dynamic_within", dynamic, {}},
      {"dynamic_beyond", dynamic, {{"no scaling", llama()}}},
      {"head_dim", with(llama(), {{"attention", {{"head_dim", 6}, {"qk_norm", "rmsnorm"}}}}), {}},
      {"window",
       window,
       {{"five keys", with(window, {{"attention", {{"sliding_window", 5}}}})},
        {"no window", with(window, {{"attention", {{"sliding_window", 0}}}})}}},
      {"gemma2_caps",
       caps,
       {{"no caps", with(caps, with(no_cap, no_final_cap))},
        {"no final cap", with(caps, no_final_cap)},
        {"no score cap", with(caps, no_cap)}}},
      {"gemma", wide, {{"exact gelu", with(wide, {{"ffn", {{"kind", "geglu_erf"}}}})}}},
      {"bloom", bloom(), {}},
      {"mpt", mpt(), {}},
      {"t5", t5(), {}},
      {"t5_gated",
       with(t5(), {{"logit_scale", 1},  // and tied all the same, as this version of transformers does
                   {"position", {{"num_buckets", 32}, {"max_distance", 128}}},
                   {"ffn", {{"kind", "geglu"}}}}),
       {}},
      {"gpt2", gpt2(), {}},
      {"bert", bert(), {}},
      {"bart", bart(), {}},
      {"olmo2",
       with(llama(), {{"norm", {{"eps", 1e-5}, {"placement", "post_sublayer"}}},
                      {"attention", {{"qk_norm", "rmsnorm"}, {"qk_norm_scope", "all_heads"}}}}),
       {}},
      {"cohere",
       with(llama(), {{"tie_word_embeddings", true},
                      {"logit_scale", 0.0625},
                      {"norm", {{"kind", "layernorm"}, {"eps", 1e-5}, {"bias", false}}},
                      {"block", {{"form", "parallel"}}},
                      {"position", {{"theta", 500000}, {"pairing", "interleaved"}}},
                      {"attention", {{"qk_norm", "layernorm"}, {"qk_norm_scope", "each_head"}}}}),
       {}},
      {"gpt_neox",
       with(biased(32, 2, {{"kind", "rope"}, {"partial_rotary_factor", 0.25}}),
            {{"tie_word_embeddings", false},
             {"block", {{"form", "parallel_two_norms"}}},
             {"ffn", {{"kind", "gelu"}, {"intermediate_size", 24}}}}),
       {}},
      {"gptj",
       with(biased(16, 2, {{"kind", "rope"}, {"partial_rotary_factor", 0.5}, {"pairing", "interleaved"}}),
            {{"tie_word_embeddings", false},
             {"head_bias", true},
             {"block", {{"form", "parallel"}}},
             {"attention", {{"qkv_bias", false}, {"output_bias", false}}}}),
       {}},
      {"deepseek_v2", deepseek(0, none), {}},
      {"deepseek_v2_yarn",
       biased_yarn,
       {{"scores not multiplied",
         with(biased_yarn, scaled({{"mscale", 0}, {"mscale_all_dim", 0}, {"attention_factor", amplitude}}))},
        {"no scaling", with(deepseek(12, none), {{"attention", {{"bias", true}}}})}}},
      {"deepseek_v3",
       deepseek(12, none),
       {{"pairs half a head apart", with(deepseek(12, none), {{"position", {{"pairing", "half_split"}}}})}}},
      {"deepseek_v3_yarn", deepseek(0, yarn_mscales(1, 1)), {}},
  };
}

// Layers of 8 experts.
Json experts(const Json& moe) {
  return with(with(llama(), {{"hidden_size", 32}, {"ffn", {{"intermediate_size", 28}}}, {"num_hidden_layers", 3}}),
              {{"moe", with({{"num_experts", 8}, {"num_experts_per_tok", 3}}, moe)}});
}

Json qwen2_moe(bool normalized, const std::vector<Json>& layers) {
  Json d = with(experts({{"moe_intermediate_size", 12},
                         {"norm_topk_prob", normalized},
                         {"shared_expert_intermediate_size", 20},
                         {"shared_expert_gate", true}}),
                {{"attention", {{"qkv_bias", true}}}, {"num_hidden_layers", nullptr}});
  d["layers"] = layers;
  return d;
}

// DeepSeek-V3's router, in the second and third layer.
Json glm4_moe() {
  Json d = with(experts({{"num_experts_per_tok", 2},
                         {"moe_intermediate_size", 12},
                         {"scoring_func", "sigmoid"},
                         {"norm_topk_prob", true},
                         {"routed_scaling_factor", 2.5},
                         {"n_group", 4},
                         {"topk_group", 2},
                         {"group_score", "top_two"},
                         {"selection_bias", true},
                         {"shared_expert_intermediate_size", 24}}),
                {{"position", {{"partial_rotary_factor", 0.5}}},
                 {"attention", {{"qkv_bias", true}}},
                 {"num_hidden_layers", nullptr}});
  d["layers"] = {{{"moe", {{"num_experts", 0}}}}, {{"repeat", 2}}};
  return d;
}

std::vector<Published> expert_specs() {
  const auto moe = [](const char* key, const Json& value) { return Json{{"moe", {{key, value}}}}; };
  const Json mixtral = experts({{"num_experts_per_tok", 2}, {"scoring_func", "softmax_of_chosen"}});
  const Json qwen3 = with(experts({{"moe_intermediate_size", 12}, {"norm_topk_prob", true}}),
                          {{"attention", {{"head_dim", 6}, {"qk_norm", "rmsnorm"}}}});
  const Json dense = {{"moe", {{"num_experts", 0}}}}, sparse = {{"repeat", 1}};
  const Json olmoe = with(experts({{"norm_topk_prob", false}}),
                          {{"attention", {{"qk_norm", "rmsnorm"}, {"qk_norm_scope", "all_heads"}}}});
  return {
      {"mixtral",
       mixtral,
       {{"one expert a token", with(mixtral, moe("num_experts_per_tok", 1))},
        {"three experts", with(mixtral, moe("num_experts_per_tok", 3))}}},
      {"qwen3_moe", qwen3, {{"not normalized", with(qwen3, moe("norm_topk_prob", false))}}},
      {"qwen2_moe",
       qwen2_moe(false, {dense, sparse}),
       {{"normalized", qwen2_moe(true, {dense, sparse})},
        {"the other layer dense", qwen2_moe(false, {sparse, dense})}}},
      {"olmoe", olmoe, {{"normalized", with(olmoe, moe("norm_topk_prob", true))}}},
      {"glm4_moe",
       glm4_moe(),
       {{"no factor", with(glm4_moe(), moe("routed_scaling_factor", 1))},
        {"not normalized", with(glm4_moe(), moe("norm_topk_prob", false))},
        {"any group", with(glm4_moe(), moe("topk_group", 4))},
        {"one group", with(glm4_moe(), moe("topk_group", 1))}}},
  };
}

Json deepseek_v2_experts() {
  Json d = with(deepseek(12, {{"kind", "none"}}), {{"moe",
                                                    {{"num_experts", 8},
                                                     {"num_experts_per_tok", 3},
                                                     {"moe_intermediate_size", 10},
                                                     {"routed_scaling_factor", 1.5},
                                                     {"n_group", 4},
                                                     {"topk_group", 2},
                                                     {"shared_expert_intermediate_size", 20}}},
                                                   {"num_hidden_layers", nullptr}});
  d["layers"] = {{{"moe", {{"num_experts", 0}}}}, {{"repeat", 2}}};
  return d;
}

Json deepseek_v3_experts(const Json& scaling) {
  Json d = with(deepseek(6, scaling),
                {{"attention", {{"num_attention_heads", 2}, {"qk_nope_head_dim", 4}, {"v_head_dim", 6}}},
                 {"moe",
                  {{"num_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 8},
                   {"scoring_func", "sigmoid"},
                   {"norm_topk_prob", true},
                   {"routed_scaling_factor", 2.5},
                   {"n_group", 2},
                   {"topk_group", 1},
                   {"group_score", "top_two"},
                   {"selection_bias", true},
                   {"shared_expert_intermediate_size", 8}}},
                 {"num_hidden_layers", nullptr}});
  d["layers"] = {{{"moe", {{"num_experts", 0}}}}, {{"repeat", 1}}};
  return d;
}

// Experts and latent attention together.
std::vector<Published> deepseek_specs() {
  const Json v2 = deepseek_v2_experts();
  const Json v3 = deepseek_v3_experts(with(yarn(), {{"mscale", 1}, {"mscale_all_dim", 1}}));
  const Json no_factor = {{"moe", {{"routed_scaling_factor", 1}}}};
  return {
      {"deepseek_v2_experts",
       v2,
       {{"any group", with(v2, {{"moe", {{"topk_group", 4}}}})}, {"no factor", with(v2, no_factor)}}},
      {"deepseek_v3_experts",
       v3,
       {{"no scaling", deepseek_v3_experts({{"kind", "none"}})}, {"no factor", with(v3, no_factor)}}},
  };
}

Json gpt_oss(int64_t window, const Json& changes = Json::object()) {
  Json scaling = yarn();
  scaling["truncate"] = false;
  Json d = with(
      llama(),
      {{"hidden_size", 128},
       {"norm", {{"eps", 1e-5}}},
       {"position", {{"theta", 20}, {"scaling", scaling}}},
       {"attention", {{"head_dim", 10}, {"qkv_bias", true}, {"output_bias", true}, {"sinks", true}}},
       {"ffn", {{"kind", "swiglu_clamped"}, {"bias", true}}},
       {"moe",
        {{"num_experts", 5}, {"num_experts_per_tok", 2}, {"scoring_func", "softmax_of_chosen"}, {"router_bias", true}}},
       {"num_hidden_layers", nullptr}});
  const Json sliding = {{"attention", {{"sliding_window", window}}}};
  d["layers"] = {sliding, {{"repeat", 1}}, sliding};
  return with(d, changes);
}

Json dbrx(const Json& changes = Json::object()) {
  return with(llama(), with({{"hidden_size", 32},
                             {"norm", {{"kind", "layernorm"}, {"eps", 1e-5}, {"bias", false}}},
                             {"position", {{"theta", 300}}},
                             {"attention", {{"clip_qkv", 0.8}}},
                             {"ffn", {{"intermediate_size", 20}}},
                             {"moe", {{"num_experts", 6}, {"num_experts_per_tok", 3}, {"norm_topk_prob", true}}},
                             {"num_hidden_layers", 3}},
                            changes));
}

Json opt(const Json& changes = Json::object()) {
  return with(with(biased(24, 3, {{"kind", "learned"}, {"offset", 2}}),
                   {{"max_position_embeddings", 20}, {"ffn", {{"kind", "relu"}, {"intermediate_size", 40}}}}),
              changes);
}

Json starcoder2(const Json& changes = Json::object()) {
  return with(
      with(biased(24, 6, {{"kind", "rope"}}),
           {{"attention", {{"num_key_value_heads", 3}, {"sliding_window", 4}}}, {"ffn", {{"intermediate_size", 24}}}}),
      changes);
}

std::vector<Published> later_specs() {
  return {
      {"gpt_oss", gpt_oss(4), {{"five keys", gpt_oss(5)}, {"whole pairs", gpt_oss(4, scaled({{"truncate", true}}))}}},
      {"dbrx",
       dbrx(),
       {{"not clipped", dbrx({{"attention", {{"clip_qkv", 0}}}})},
        {"not normalized", dbrx({{"moe", {{"norm_topk_prob", false}}}})}}},
      {"opt",
       opt(),
       {{"norms behind", opt({{"norm", {{"placement", "post"}}}})}, {"gelu", opt({{"ffn", {{"kind", "gelu"}}}})}}},
      {"starcoder2",
       starcoder2(),
       {{"five keys", starcoder2({{"attention", {{"sliding_window", 5}}}})},
        {"relu", starcoder2({{"ffn", {{"kind", "relu"}}}})}}},
  };
}

std::vector<Published> every_spec() {
  std::vector<Published> all = published_specs();
  for (const auto& more : {expert_specs(), deepseek_specs(), later_specs()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The logits [vocab] that the case looks at, of one pass: the first position's of an encoder, else the last one's.
std::vector<float> one_pass(const Model& model, ThreadPool& pool, const std::vector<int32_t>& tokens,
                            const std::vector<int32_t>& source) {
  const size_t vocab = static_cast<size_t>(model.spec().vocab_size);
  std::vector<float> all(tokens.size() * vocab);
  forward_logits(model, pool, tokens, all, source);
  const auto at =
      all.begin() + static_cast<std::ptrdiff_t>(model.spec().topology == Topology::kEncoder ? 0 : all.size() - vocab);
  return {at, at + static_cast<std::ptrdiff_t>(vocab)};
}

class PublishedCases : public ::testing::TestWithParam<Published> {
 protected:
  void SetUp() override {
    case_ = published().at(GetParam().name);
    tokens_ = case_["tokens"].get<std::vector<int32_t>>();
    // What follows "tokens" is read by the decoder where there is one.
    const auto decoder = case_["decoder_tokens"].get<std::vector<int32_t>>();
    if (!decoder.empty()) source_ = std::exchange(tokens_, decoder);
  }
  std::unique_ptr<Model> model(const Json& document) const {
    return hashed_model(spec_from_json(document, "case"), case_["family"].get<std::string>());
  }

  ThreadPool pool_{2};
  Json case_;
  std::vector<int32_t> tokens_, source_;
};

TEST_P(PublishedCases, EqualTransformersOnEveryPath) {
  const auto right = model(GetParam().right);
  const auto expected = case_["logits"].get<std::vector<double>>();
  const std::vector<float> whole = one_pass(*right, pool_, tokens_, source_);
  EXPECT_TRUE(close(whole, expected, tolerance::kLogits));
  if (right->spec().topology == Topology::kEncoder) return;
  for (const size_t chunk : {size_t{1}, size_t{3}, tokens_.size()}) {
    Decoder decoder(*right, pool_, static_cast<int64_t>(tokens_.size()), static_cast<int64_t>(source_.size()));
    if (!source_.empty()) decoder.read_source(source_);
    std::span<const float> last;
    for (size_t at = 0; at < tokens_.size(); at += chunk)
      last = decoder.feed(std::span(tokens_).subspan(at, std::min(chunk, tokens_.size() - at)));
    EXPECT_TRUE(close(last, std::span<const float>(whole), tolerance::kKernel)) << "in chunks of " << chunk;
  }
}

// Each mistake, written as a spec, gives what transformers gives for it, and not the right value.
TEST_P(PublishedCases, MistakesAreTold) {
  const auto expected = case_["logits"].get<std::vector<double>>();
  std::set<std::string> written;
  for (const auto& [mistake, document] : GetParam().wrong) {
    const std::vector<float> got = one_pass(*model(document), pool_, tokens_, source_);
    EXPECT_TRUE(close(got, case_["wrong"][mistake].get<std::vector<double>>(), tolerance::kLogits)) << mistake;
    EXPECT_FALSE(close(got, expected, tolerance::kLogits)) << mistake;
    written.insert(mistake);
  }
  for (const auto& [mistake, logits] : case_["wrong"].items())
    EXPECT_TRUE(written.count(mistake)) << mistake << " has no spec here";
}

// Loss and gradients of the mean cross-entropy of each next token, and of the balance losses where there are experts.
// Theirs is experts * sum(choices / rows * mean probability), so that the factor before ours is theirs times the
// experts a token.
TEST_P(PublishedCases, GradientsEqualTransformers) {
  const Json& right = published_training()["cases"].at(GetParam().name);
  Json document = GetParam().right;
  const bool balanced = right.contains("balance");
  if (balanced)
    document["moe"]["router_aux_loss_coef"] =
        right["balance"]["coefficient"].get<double>() * document["moe"]["num_experts_per_tok"].get<double>();
  const std::string family = case_["family"];
  const auto m = hashed_model(spec_from_json(document, "case"), family, true);

  Batch batch;
  std::vector<int32_t> targets(tokens_.begin() + 1, tokens_.end());
  targets.push_back(kIgnoredTarget);
  batch.add(tokens_, targets);
  if (!source_.empty()) batch.add_source(source_);
  const StepResult step = Trainer(*m, pool_, {}).accumulate({&batch, 1}, 0);
  EXPECT_NEAR(step.loss, right["loss"].get<double>(), tolerance::kLoss);

  if (balanced) {
    std::vector<double> of_layers, of_theirs = right["balance"]["of_layers"];
    for (const auto& [layer, statistics] : step.routers)
      of_layers.push_back(statistics.balance_loss / right["balance"]["coefficient"].get<double>());
    EXPECT_TRUE(close(of_layers, of_theirs, tolerance::kLogits));
    // What transformers adds to its loss takes all layers together, so that it is this for one layer alone.
    if (of_layers.size() == 1) {
      EXPECT_NEAR(of_layers[0], right["balance"]["of_all_layers"].get<double>(), tolerance::kLoss);
    }
  }

  const auto theirs = right["gradients"].get<std::map<std::string, std::array<double, 2>>>();
  double largest = 0;
  for (const auto& [name, sums] : theirs) largest = std::max(largest, sums[0]);
  const auto ours = gradient_sums(*m, family);
  for (const auto& [name, sums] : theirs) {
    ASSERT_TRUE(ours.count(name)) << name;
    // A key's bias has no gradient but what rounding leaves of the others'.
    const double scale = sums[0] + 1e-3 * largest;
    EXPECT_NEAR(ours.at(name).norm, sums[0], tolerance::kLogits * scale) << name;
    EXPECT_NEAR(ours.at(name).product, sums[1], tolerance::kLogits * scale) << name;
  }
  // No loss moves a selection bias.
  for (const auto& [name, sums] : ours) {
    const bool unmoved = name.ends_with("e_score_correction_bias") && sums.norm == 0;
    EXPECT_TRUE(unmoved || theirs.count(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Reports, PublishedCases, ::testing::ValuesIn(every_spec()),
                         [](const auto& c) { return c.param.name; });

TEST(PublishedCases, EveryCaseHasASpec) {
  std::set<std::string> names;
  for (const Published& c : every_spec()) names.insert(c.name);
  for (const auto& [name, fields] : published().items()) EXPECT_TRUE(names.count(name)) << name;
  EXPECT_EQ(names.size(), published().size());
  EXPECT_EQ(names.size(), published_training()["cases"].size());
}

TEST(HashedModel, StartsAsPublished) {
  const HashedTensor head("lm_head.weight", 0), norm("model.norm.weight", 1);
  const float values[] = {head[0], head[1], head[2], head[3], norm[0], norm[1]};
  const double right[] = {-0.48052067, -0.19058097, 0.12684517, -0.15240469, 0.87377926, 0.92644746};
  EXPECT_TRUE(close(std::span<const float>(values), std::span<const double>(right), tolerance::kFloat));
}

// Dynamic NTK looks at one length: the context of the cache, without one the sequence's own. A long sequence leaves
// nothing behind for a short one, and keys that are cached turn as in one pass over the whole (huggingface/transformers
// #25104, where token by token differs: 0.42695 as the first logit).
TEST(DynamicNtk, ThreeRequestsOfOneProcess) {
  ThreadPool pool(2);
  const std::vector<Published> specs = published_specs();
  const auto dynamic =
      std::find_if(specs.begin(), specs.end(), [](const auto& c) { return c.name == "dynamic_beyond"; });
  const auto model = hashed_model(spec_from_json(dynamic->right, "case"), "llama");
  const auto logits = [](const char* name) { return published().at(name)["logits"].get<std::vector<double>>(); };
  const auto tokens = [](const char* name) { return published().at(name)["tokens"].get<std::vector<int32_t>>(); };
  std::vector<std::vector<float>> answers;
  for (const char* name : {"dynamic_within", "dynamic_beyond", "dynamic_within"}) {
    answers.push_back(one_pass(*model, pool, tokens(name), {}));
    EXPECT_TRUE(close(answers.back(), logits(name), tolerance::kLogits)) << name;
  }
  EXPECT_EQ(answers[0], answers[2]) << "to the bit";
  EXPECT_TRUE(
      close(answers[0],
            one_pass(*hashed_model(spec_from_json(llama(), "plain"), "llama"), pool, tokens("dynamic_within"), {}),
            tolerance::kKernel))
      << "within the trained length nothing is stretched";

  // One decoder for all three: its context decides, so the short sequence is stretched as the long one is.
  Decoder decoder(*model, pool, 12);
  const auto fed = [&](const char* name) {
    decoder.reset();
    std::span<const float> last;
    for (const int32_t token : tokens(name)) last = decoder.feed({&token, 1});
    return std::vector<float>(last.begin(), last.end());
  };
  const std::vector<float> first = fed("dynamic_within"), beyond = fed("dynamic_beyond");
  EXPECT_TRUE(close(beyond, answers[1], tolerance::kKernel));
  EXPECT_EQ(first, fed("dynamic_within"));
  EXPECT_FALSE(close(first, answers[0], tolerance::kLogits));
}

// Query r of a window of 4 sees min(r + 1, 4) keys: with the values told apart, that many move its result.
TEST(SlidingWindow, CountsTheQueryItself) {
  ThreadPool pool(2);
  Json document = with(llama(), {{"attention", {{"sliding_window", 4}}}, {"num_hidden_layers", 1}});
  const auto model = hashed_model(spec_from_json(document, "case"), "mistral");
  const auto tokens = published().at("window")["tokens"].get<std::vector<int32_t>>();
  const std::vector<float> right = one_pass(*model, pool, tokens, {});
  for (size_t changed = 0; changed < tokens.size(); ++changed) {
    std::vector<int32_t> other = tokens;
    other[changed] = 2;
    EXPECT_EQ(one_pass(*model, pool, other, {}) == right, changed + 4 < tokens.size()) << changed;
  }
  // 0 is no window.
  document["attention"]["sliding_window"] = 0;
  const std::vector<float> unbounded =
      one_pass(*hashed_model(spec_from_json(document, "case"), "mistral"), pool, tokens, {});
  document["attention"].erase("sliding_window");
  EXPECT_EQ(unbounded, one_pass(*hashed_model(spec_from_json(document, "case"), "mistral"), pool, tokens, {}));
  document["attention"]["sliding_window"] = -1;
  EXPECT_THROW(spec_from_json(document, "case"), InputError);
}

// What a norm of queries and keys is taken over (vllm-project/vllm #16311): each head, or all heads of a token
// together. The length of the weight is that of what it is taken over.
TEST(QkNorm, PerHeadAndOverAllHeads) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  const auto normed = [&](HeadNormScope scope) {
    const Var x = op.make(1, 8);
    const float q[] = {3, 4, 0, 0, 0, 0, 0, 10};
    std::copy(std::begin(q), std::end(q), x.value.data());
    const HeadNorm norm{.heads = 2, .head_dim = 4, .scope = scope, .weight = {}};
    normalize_heads_in_place(op, x, {&norm, 1});
    return std::vector<float>(x.value.data(), x.value.data() + 8);
  };
  EXPECT_TRUE(close(normed(HeadNormScope::kHead), std::vector<double>{1.2, 1.6, 0, 0, 0, 0, 0, 2}, tolerance::kKernel));
  EXPECT_TRUE(close(normed(HeadNormScope::kAllHeads), std::vector<double>{0.75895, 1.01193, 0, 0, 0, 0, 0, 2.52982},
                    tolerance::kKernel));
  for (const auto& [scope, length] : {std::pair<const char*, int64_t>{"head", 6}, {"all_heads", 24}}) {
    const Json d = with(llama(), {{"attention", {{"head_dim", 6}, {"qk_norm", "rmsnorm"}, {"qk_norm_scope", scope}}}});
    const Parameters parameters(spec_from_json(d, "case"));
    EXPECT_EQ(parameters.find("layers.0.attention.q_norm.weight")->decl.shape, std::vector<int64_t>{length}) << scope;
  }
}

// Activations are float32, so the factor on the embeddings is sqrt(hidden_size) as it is: 6.32456 for 40, not
// the 6.3125 to which a model that runs in bfloat16 rounds it. There is no such mode here.
TEST(EmbeddingScale, IsNotRounded) {
  ThreadPool pool(2);
  Arena arena;
  const auto model = hashed_model(spec_from_json(with(gemma(), {{"hidden_size", 40}}), "case"), "gemma");
  // Attention adds nothing, so what the first sublayer leaves is the embedding.
  for (float& w : model->parameters().values(*model->parameters().find("layers.0.attention.output.weight"))) w = 0;
  std::vector<float> embedded;
  const std::vector<int32_t> tokens{3};
  const auto observe = [&](std::string_view part, int64_t layer, ConstRows result) {
    if (part == "attention" && layer == 0) embedded.assign(result.row(0), result.row(0) + 40);
  };
  model->hidden(OpContext{pool, arena, nullptr},
                {.tokens = tokens, .layout = equal_sequences(1, 1), .dropout = {}, .observe = observe});
  std::vector<double> right, rounded;
  const HashedTensor table("model.embed_tokens.weight", 0);
  for (uint32_t i = 0; i < 40; ++i) {
    right.push_back(std::sqrt(40.0) * static_cast<double>(table[3 * 40 + i]));
    rounded.push_back(6.3125 * static_cast<double>(table[3 * 40 + i]));
  }
  EXPECT_TRUE(close(embedded, right, tolerance::kFloat));
  EXPECT_FALSE(close(embedded, rounded, tolerance::kFloat));
}

// The factor multiplies the routed experts once, and neither the shared expert nor what the layer is added to
// (vllm-project/vllm #24119, pytorch/torchtitan #1448).
TEST(RoutedScalingFactor, MultipliesTheRoutedPartAlone) {
  ThreadPool pool(2);
  Arena arena;
  const auto tokens = published().at("glm4_moe")["tokens"].get<std::vector<int32_t>>();
  // What the first layer with experts gets and leaves.
  const auto layer = [&](double factor, bool shared) {
    const Json document = with(glm4_moe(), {{"moe", {{"routed_scaling_factor", factor}}}});
    const auto model = hashed_model(spec_from_json(document, "case"), "glm4_moe");
    Parameters& parameters = model->parameters();
    const auto& down = *parameters.find("layers.1.ffn.shared_expert.down.weight");
    if (!shared) std::ranges::fill(parameters.values(down), 0.0f);
    std::map<std::string, std::vector<double>> seen;
    const auto observe = [&](std::string_view part, int64_t at, ConstRows result) {
      if (at != 1) return;
      for (int64_t r = 0; r < result.rows; ++r)
        seen[std::string(part)].insert(seen[std::string(part)].end(), result.row(r), result.row(r) + result.width);
    };
    model->hidden(OpContext{pool, arena, nullptr}, {.tokens = tokens,
                                                    .layout = equal_sequences(1, static_cast<int64_t>(tokens.size())),
                                                    .dropout = {},
                                                    .observe = observe});
    return seen;
  };
  auto bare = layer(1, false), once = layer(1, true), twice_and_a_half = layer(2.5, true);
  std::vector<double> by_the_factor, right;
  for (size_t i = 0; i < bare["ffn"].size(); ++i) {
    by_the_factor.push_back(twice_and_a_half["ffn"][i] - once["ffn"][i]);
    right.push_back(1.5 * (bare["ffn"][i] - bare["attention"][i]));
  }
  EXPECT_TRUE(close(by_the_factor, right, tolerance::kKernel));
}

// Rows of 10 and 16 tokens, which a batch holds without any filling. Where the shorter one is padded and the pads are
// counted, the loss is another (huggingface/transformers #28505).
TEST(BalanceLoss, HoldsNoPadding) {
  ThreadPool pool(2);
  const Json& right = published_training()["padded_balance"];
  const double top_k = right["config"]["num_experts_per_tok"];
  const Json document = with(llama(), {{"norm", {{"eps", 1e-5}}},
                                       {"position", {{"theta", 1e6}}},
                                       {"moe",
                                        {{"num_experts", 4},
                                         {"num_experts_per_tok", 2},
                                         {"scoring_func", "softmax_of_chosen"},
                                         {"router_aux_loss_coef", top_k}}}});
  const auto model = hashed_model(spec_from_json(document, "case"), "mixtral", true);
  Batch batch;
  for (const auto& row : right["rows"].get<std::vector<std::vector<int32_t>>>()) batch.add(row, row);
  const auto expected = right["of_layers"].get<std::vector<double>>();
  std::vector<double> got;
  for (const auto& [layer, statistics] : Trainer(*model, pool, {}).accumulate({&batch, 1}, 0).routers)
    got.push_back(statistics.balance_loss);
  EXPECT_TRUE(close(got, expected, tolerance::kLogits));
  EXPECT_FALSE(close(got, right["wrong"]["pads counted"].get<std::vector<double>>(), tolerance::kLogits));
}

// Two layers' logits of three tokens and two pads, 4 experts, top-2. transformers' figure is that of one layer with the
// rows of all, times the experts a token; ours is of each layer by itself. Of equal logits theirs is the choice of
// torch.topk, and kTie puts that one first.
TEST(BalanceLoss, OfLayersTakenTogether) {
  constexpr float kTie = 1e-6f;
  const RouterShape shape{.experts = 4, .top_k = 2};
  const std::vector<std::vector<float>> layers{
      {2, 1, 0, -1, 0, 1, 2, -1, 1, 0, -1, 2, 9, 0, kTie, 0, 9, 0, kTie, 0},
      {0, 3, 0, kTie, 0, 3, 0, kTie, 0, 3, 0, kTie, 0, 0, 9, kTie, 0, 0, 9, kTie}};
  for (const auto& [rows, right] : {std::pair<int64_t, double>{3, 2.4773407}, {5, 1.9096432}}) {
    RouterSums sums{std::vector<double>(4)};
    std::vector<int64_t> load(4);
    for (const std::vector<float>& logits : layers) {
      const ConstRows l{logits.data(), rows, 4, 4};
      std::vector<float> scores(logits.size());
      Routing routing(shape, rows);
      router_scores(shape, l, {scores.data(), rows, 4, 4});
      choose_experts(shape, l, {scores.data(), rows, 4, 4}, routing.expert.data(), routing.gate.data());
      count_choices(routing.expert.data(), rows * 2, load.data());
      add_router_sums(shape, l, {scores.data(), rows, 4, 4}, sums);
    }
    EXPECT_NEAR(2 * load_balance(shape, load, sums.probability, 2 * rows), right, tolerance::kFloat) << rows;
  }
}

// Latents that are cached are read without expanding them, or expanded: both are the published attention.
TEST(LatentCache, BothFormsEqualTransformers) {
  ThreadPool pool(2);
  for (const Published& c : deepseek_specs()) {
    const Json& right = published().at(c.name);
    const auto tokens = right["tokens"].get<std::vector<int32_t>>();
    const auto model = hashed_model(spec_from_json(c.right, "case"), right["family"].get<std::string>());
    for (const LatentForm form : {LatentForm::kAbsorbed, LatentForm::kExpanded}) {
      Decoder decoder(*model, pool, static_cast<int64_t>(tokens.size()));
      decoder.set_latent_form(form);
      std::span<const float> last;
      for (const int32_t token : tokens) last = decoder.feed({&token, 1});
      EXPECT_TRUE(close(std::vector<float>(last.begin(), last.end()), right["logits"].get<std::vector<double>>(),
                        tolerance::kLogits))
          << c.name;
    }
  }
}

// Query head h reads KV head h / 2, not h % 2 (apple/axlearn #842), and conversion joins neighbours
// (rasbt/LLMs-from-scratch #922): B12. The first six logits, by transformers.
TEST(GroupedHeads, AreNeighbours) {
  ThreadPool pool(2);
  const auto tokens = published().at("control")["tokens"].get<std::vector<int32_t>>();
  const auto llama_of = [](int64_t kv_heads) {
    const Json document = with(llama(), {{"attention", {{"num_key_value_heads", kv_heads}}}});
    return hashed_model(spec_from_json(document, "case"), "llama");
  };
  const auto first = [&](const Model& model, size_t count = 6) {
    std::vector<float> logits = one_pass(model, pool, tokens, {});
    logits.resize(count);
    return logits;
  };
  const auto mean = [](const Model& model) { return convert_kv_heads(model, {.heads = 2, .merge = KvMerge::kMean}); };
  // Gives the KV heads of every layer of `to` those of `from` in this order.
  const auto reorder = [](const Model& from, const std::vector<int64_t>& order, Model& to) {
    constexpr int64_t kWidth = 16, kDim = 4;
    const int64_t old = std::get<GqaSpec>(from.spec().layers[0].attention).num_key_value_heads;
    for (const char* name : {"layers.0.attention.qkv.weight", "layers.1.attention.qkv.weight"}) {
      const float* const source = from.parameters().param(name).value;
      float* const target = to.parameters().values(*to.parameters().find(name)).data();
      std::copy_n(source, 4 * kDim * kWidth, target);
      for (int64_t part = 0; part < 2; ++part) {
        for (size_t h = 0; h < order.size(); ++h) {
          const int64_t row = 4 + part * static_cast<int64_t>(order.size()) + static_cast<int64_t>(h);
          std::copy_n(source + (4 + part * old + order[h]) * kDim * kWidth, kDim * kWidth,
                      target + row * kDim * kWidth);
        }
      }
    }
  };
  const auto two = llama_of(2), four = llama_of(4);
  const std::vector<double> tiled{-0.46549, 0.06005, -0.91512};
  const auto repeated = llama_of(4);
  reorder(*two, {0, 0, 1, 1}, *repeated);
  EXPECT_TRUE(close(first(*repeated), first(*two), tolerance::kKernel));
  reorder(*two, {0, 1, 0, 1}, *repeated);
  EXPECT_TRUE(close(first(*repeated, 3), tiled, tolerance::kPrinted));
  EXPECT_FALSE(close(first(*two, 3), tiled, tolerance::kPrinted));

  const std::vector<double> before{-1.07489, -0.02689, -1.40561, 1.28855, -0.82645, -1.23004},
      after{-0.88547, 0.86137, -0.92284, 1.2714, -1.56996, -0.87086}, not_neighbours{-1.28408, 0.50028};
  EXPECT_TRUE(close(first(*four), before, tolerance::kPrinted));
  EXPECT_TRUE(close(first(*mean(*four)), after, tolerance::kPrinted));
  const auto apart = llama_of(4);
  reorder(*four, {0, 2, 1, 3}, *apart);
  EXPECT_TRUE(close(first(*mean(*apart), 2), not_neighbours, tolerance::kPrinted));
  EXPECT_FALSE(close(first(*mean(*four), 2), not_neighbours, tolerance::kPrinted));
  EXPECT_EQ(model_config(mean(*four)->spec(), "llama").at("num_key_value_heads"), 2);
  EXPECT_THROW(convert_kv_heads(*four, {.heads = 3}), InputError);
}

// The scale on scores at the published sizes, where YaRN's factor joins 1 / sqrt(192).
TEST(LatentCache, ScaleOfScores) {
  const struct {
    double mscale, right;
  } known[] = {{0.707, 0.1147214}, {1, 0.1352338}};  // DeepSeek-V2-Lite, DeepSeek-V3
  for (const auto& k : known) {
    const Json scaling = {{"kind", "yarn"},
                          {"factor", 40},
                          {"original_max_position_embeddings", 4096},
                          {"mscale", k.mscale},
                          {"mscale_all_dim", k.mscale}};
    const ArchSpec spec = spec_from_json(
        with(deepseek(0, scaling), {{"attention", {{"qk_nope_head_dim", 128}, {"qk_rope_head_dim", 64}}}}), "case");
    const RopeAngles angles = std::get<RopePosition>(spec.layers[0].position).angles(64, 4096, 4096);
    const double scale = std::get<MlaSpec>(spec.layers[0].attention).score_scale() * angles.score_factor;
    EXPECT_NEAR(scale, k.right, tolerance::kFloat);
    EXPECT_DOUBLE_EQ(angles.amplitude, 1);
  }
}

}  // namespace
}  // namespace transept
