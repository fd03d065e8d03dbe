// Public models, read from what their config.json says: every count that is known of them, and presets beside them
// (tests/plan/public_models.json says what its figures are).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "ckpt/safetensors.h"
#include "convert/model_folder.h"
#include "plan/plan.h"
#include "spec/presets.h"
#include "support/goldens.h"
#include "support/temp_folder.h"

namespace transept {
namespace {

const Json& models() {
  static const Json all = parse_json(
      read_file(std::filesystem::path(TRANSEPT_SOURCE_DIR) / "tests/plan/public_models.json", 1 << 20), "models");
  return all.at("models");
}

ArchSpec read_config(const Json& config) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "config.json", config.dump());
  return read_model_spec(folder.path());
}

ArchSpec without_windows(ArchSpec spec) {
  for (LayerSpec& layer : spec.layers) std::visit([](auto& a) { a.sliding_window = 0; }, layer.attention);
  return spec;
}

// At a context that may lie beyond the table of positions, which matters for no figure but the table's own size.
Plan plan_at(ArchSpec spec, int64_t context) {
  spec.max_position_embeddings = std::max(spec.max_position_embeddings, context);
  return make_plan(spec, {.context = context, .dtype = "bf16"});
}

// FLOPs of one query and one key.
double per_key(const ArchSpec& spec, int64_t context) {
  return plan_at(spec, context).flops.attention_forward_per_token / (static_cast<double>(context + 1) / 2);
}

TEST(PublicModels, CountsAreTheKnownOnes) {
  EXPECT_EQ(models().size(), 96u);
  for (const Json& m : models()) {
    SCOPED_TRACE(m.at("id"));
    const ArchSpec spec = read_config(m.at("config"));
    const Plan p = make_plan(spec, {.context = 64, .dtype = "bf16"});
    EXPECT_EQ(p.parameters.total, m.at("total"));
    EXPECT_EQ(p.parameters.active, m.at("active"));
    EXPECT_EQ(p.parameters.active_without_input_embedding, m.at("active_without_input_embedding"));
    EXPECT_EQ(p.kv_cache.elements_per_token, m.value("kv", 0));
    EXPECT_EQ(p.kv_cache.source_elements_per_token, m.value("source_kv", 0));
    EXPECT_EQ(p.kv_cache.bytes_per_token, 2 * p.kv_cache.elements_per_token);
    if (m.contains("kv_bytes")) {
      const int64_t contexts[] = {4096, 32768, 131072};
      for (size_t i = 0; i < std::size(contexts); ++i)
        EXPECT_EQ(plan_at(spec, contexts[i]).kv_cache.bytes, m["kv_bytes"][i]) << contexts[i];
    }
    if (m.contains("linear")) {
      EXPECT_EQ(p.flops.linear_forward_per_token, m["linear"]);
      const ArchSpec whole = without_windows(spec);
      EXPECT_EQ(per_key(whole, 4096), m.at("attention_per_key"));
      EXPECT_EQ(plan_at(whole, 4096).flops.train_per_token, m.at("train_at_4096"));
    }
    if (m.contains("hub_total") && !m.contains("hub_difference")) {
      EXPECT_EQ(m["hub_total"], m["total"]);
    }
  }
}

// Two published figures of FLOPs take the biases of feed-forward networks and routers for matrices.
TEST(PublicModels, FiguresThatCountBiases) {
  int64_t seen = 0;
  for (const Json& m : models()) {
    if (!m.contains("linear_with_ffn_biases")) continue;
    int64_t biases = 0;
    for (const ParamDecl& p : read_config(m.at("config")).declare().decls()) {
      if (p.part == Part::kFfn && p.shape.size() == 1) biases += p.shape[0] / p.experts * p.active_experts;
    }
    EXPECT_EQ(m["linear_with_ffn_biases"].get<int64_t>() - m["linear"].get<int64_t>(), 2 * biases) << m.at("id");
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

// The preset of a model, at 4096 tokens: all its counts, layer by layer, are those of the config.
TEST(PublicModels, PresetsAreTheirConfigs) {
  std::set<std::string> seen;
  for (const Json& m : models()) {
    SCOPED_TRACE(m.at("id"));
    if (m.at("preset").is_null()) continue;
    const std::string name = m.at("preset");
    EXPECT_TRUE(seen.insert(name).second);
    ArchSpec own = preset(name), read = read_config(m.at("config"));
    // Configs of the table without a length have their class's, and the counts of tables are compared by the totals.
    if (!std::holds_alternative<LearnedPosition>(own.position)) {
      own.max_position_embeddings = read.max_position_embeddings = 4096;
    }
    EXPECT_EQ(own.max_position_embeddings, read.max_position_embeddings);
    const int64_t context = std::min<int64_t>(4096, own.max_position_embeddings);
    const Json a = to_json(make_plan(own, {.context = context})), b = to_json(make_plan(read, {.context = context}));
    for (const char* key : {"parameters", "kv_cache", "flops"}) EXPECT_EQ(a.at(key), b.at(key)) << key;
    // What the counts do not show.
    ASSERT_EQ(own.layers.size(), read.layers.size());
    for (size_t i = 0; i < own.layers.size(); ++i) {
      const LayerSpec &x = own.layers[i], &y = read.layers[i];
      EXPECT_EQ(kind_name(x.norm), kind_name(y.norm));
      EXPECT_EQ(x.placement, y.placement);
      EXPECT_EQ(x.block.form, y.block.form);
      EXPECT_EQ(kind_name(x.position), kind_name(y.position));
      EXPECT_EQ(x.ffn.form().gated, y.ffn.form().gated);
      EXPECT_EQ(x.moe.scoring_func, y.moe.scoring_func);
      EXPECT_EQ(x.moe.norm_topk_prob, y.moe.norm_topk_prob);
    }
  }
  EXPECT_EQ(seen.size(), 95u);  // BERT's has the masked-token head, and its published count not
}

// What the table must see: a preset one of whose numbers is another.
TEST(PublicModels, AnotherNumberIsSeen) {
  Json config;
  for (const Json& m : models()) {
    if (m.at("id") == "gpt2") config = m.at("config");
  }
  const auto total = [](const Json& c) { return make_plan(read_config(c), {}).parameters.total; };
  EXPECT_EQ(total(config), 124439808);
  config["tie_word_embeddings"] = false;
  EXPECT_EQ(total(config), 124439808 + 50257 * 768);
  config["tie_word_embeddings"] = true;
  config["bias"] = false;
  // Without biases of four projections, 9 x 768 a layer, and of 25 norms.
  EXPECT_EQ(total(config), 124439808 - 12 * 9 * 768 - 25 * 768);
}

TEST(PublicModels, CachesOfTheAttentionKinds) {
  const auto cache = [](const char* name, int64_t context) {
    return make_plan(preset(name), {.context = context, .dtype = "bf16"}).kv_cache;
  };
  // Latent attention keeps 512 + 64 elements a token and layer.
  EXPECT_EQ(cache("deepseek-v3", 64).elements_per_token, 61 * 576);
  EXPECT_EQ(cache("deepseek-v2", 64).elements_per_token, 60 * 576);
  // 8 KV heads of 32.
  EXPECT_EQ(cache("llama-3-8b", 64).multi_head_elements_per_token, 4 * cache("llama-3-8b", 64).elements_per_token);
  EXPECT_EQ(cache("llama-3-8b", 4096).bytes * 4, cache("llama-2-7b", 4096).bytes);
  // A window of 4096 bounds it: half a GiB at any context.
  for (const int64_t context : {4096, 32768, 131072}) EXPECT_EQ(cache("mistral-7b", context).bytes, int64_t{1} << 29);
  EXPECT_EQ(cache("mistral-7b-v0.3", 131072).bytes, int64_t{1} << 34);
}

// Tables of models write beside the keys of a config.json what its family always is; another value is another model.
TEST(PublicModels, NotesInTables) {
  const struct {
    const char* id;
    Json right, wrong;
  } notes[] = {{"bloom-560m", {{"position", "alibi"}}, {{"position", "rope"}}},
               {"gemma-2-2b", {{"layer_pattern", "LG"}}, {{"layer_pattern", "LLG"}}},
               {"olmo-7b", {{"norm", "non-parametric LayerNorm"}}, {{"norm", "rmsnorm"}}},
               {"command-r-v01", {{"parallel_block", true}}, {{"parallel_block", false}}},
               {"starcoder2-3b", {{"attention_bias", true}}, {{"attention_bias", false}}},
               {"gpt-oss-120b", {{"layer_pattern", "LG"}}, {{"layer_pattern", "G"}}}};
  for (const auto& n : notes) {
    SCOPED_TRACE(n.id);
    const auto model =
        std::find_if(models().begin(), models().end(), [&](const Json& m) { return m.at("id") == n.id; });
    ASSERT_NE(model, models().end());
    Json config = model->at("config");
    config.update(n.right);
    EXPECT_EQ(make_plan(read_config(config), {}).parameters.total, model->at("total"));
    config.update(n.wrong);
    EXPECT_THROW(read_config(config), InputError);
  }
  // DBRX with the keys of its two groups beside the others, and BERT without the name of a class.
  const Json dbrx = {{"model_type", "dbrx"},     {"d_model", 6144},      {"n_layers", 40},      {"n_heads", 48},
                     {"kv_n_heads", 8},          {"vocab_size", 100352}, {"moe_top_k", 4},      {"moe_num_experts", 16},
                     {"ffn_hidden_size", 10752}, {"clip_qkv", 8},        {"rope_theta", 500000}};
  EXPECT_EQ(make_plan(read_config(dbrx), {}).parameters.total, 131596523520);
  const Json bert = {{"model_type", "bert"}, {"num_hidden_layers", 12},   {"num_attention_heads", 12},
                     {"hidden_size", 768},   {"intermediate_size", 3072}, {"vocab_size", 30522},
                     {"hidden_act", "gelu"}};
  EXPECT_EQ(make_plan(read_config(bert), {}).parameters.total, 109482240);
}

// B37 of the collected bugs: a tied matrix counted twice or left out of the FLOPs, and caches from query heads or from
// hidden_size / heads.
TEST(B37, PlannerBasics) {
  const auto plan = [](const Json& config) { return make_plan(read_config(config), {.context = 64, .dtype = "bf16"}); };
  const auto llama = [](int64_t hidden, int64_t ffn, int64_t layers, int64_t heads, int64_t kv_heads, int64_t vocab,
                        bool tied) {
    return Json{{"model_type", "llama"},       {"hidden_size", hidden},        {"intermediate_size", ffn},
                {"num_hidden_layers", layers}, {"num_attention_heads", heads}, {"num_key_value_heads", kv_heads},
                {"vocab_size", vocab},         {"tie_word_embeddings", tied}};
  };
  const Plan stories = plan(llama(288, 768, 6, 6, 6, 32000, true));
  EXPECT_EQ(stories.parameters.total, 15191712);
  EXPECT_EQ(plan(llama(288, 768, 6, 6, 6, 32000, false)).parameters.total, 24407712);  // stored twice
  // A tied head costs what an untied one does: 2 x hidden x vocabulary a token.
  EXPECT_EQ(stories.flops.linear_forward_per_token, 2 * 6 * (4 * 288 * 288 + 3 * 288 * 768) + 2 * 288 * 32000);
  EXPECT_EQ(stories.flops.linear_forward_per_token,
            plan(llama(288, 768, 6, 6, 6, 32000, false)).flops.linear_forward_per_token);

  EXPECT_EQ(plan({{"model_type", "gpt2"}}).parameters.total, 124439808);
  const Plan llama3 = plan(llama(4096, 14336, 32, 32, 8, 128256, false));
  EXPECT_EQ(llama3.parameters.total, 8030261248);
  EXPECT_EQ(llama3.kv_cache.bytes_per_token, 131072);
  EXPECT_EQ(make_plan(preset("llama-3-8b"), {.context = 32768, .dtype = "bf16"}).kv_cache.bytes, int64_t{4} << 30);
  EXPECT_EQ(plan(llama(2048, 8192, 16, 32, 8, 128256, true)).parameters.total, 1235814400);

  Json qwen3 = llama(2560, 9728, 36, 32, 8, 151936, true);
  qwen3["model_type"] = "qwen3";
  qwen3["head_dim"] = 128;
  EXPECT_EQ(plan(qwen3).parameters.total, 4022468096);
  EXPECT_EQ(plan(qwen3).kv_cache.bytes_per_token, 147456);
  qwen3["tie_word_embeddings"] = false;
  EXPECT_EQ(plan(qwen3).parameters.total, 4411424256);
  Json qwen2 = llama(8192, 29568, 80, 64, 8, 152064, false);
  qwen2["model_type"] = "qwen2";
  EXPECT_EQ(plan(qwen2).parameters.total, 72706203648);

  // The tiny GPT-2 of B30, beside the elements that its file holds.
  const auto folder = goldens() / "bugs/gpt2";
  int64_t stored = 0;
  const SafetensorsCheckpoint checkpoint(folder);
  for (const StoredTensor* tensor : checkpoint.tensors()) stored += tensor->elements();
  EXPECT_EQ(stored, 7360);
  EXPECT_EQ(make_plan(read_model_spec(folder), {}).parameters.total, stored);
}

}  // namespace
}  // namespace transept
