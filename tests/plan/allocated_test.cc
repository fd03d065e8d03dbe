// What the planner counts is what is allocated, over every combination of kinds: parameters and cache to the element,
// activations to the bound that the arena's gaps leave.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "infer/kv_store.h"
#include "plan/plan.h"
#include "spec/presets.h"
#include "support/models.h"
#include "support/spec_sweep.h"
#include "train/trainer.h"

namespace transept {
namespace {

TEST(Allocated, Parameters) {
  for (const SpecCase& c : spec_cases()) {
    const Plan plan = make_plan(c.spec, {.context = 8});
    ASSERT_EQ(plan.parameters.total, Model(c.spec).parameters().count()) << c.name;
    const ParameterCounts& p = plan.parameters;
    ASSERT_EQ(p.embedding + p.position + p.attention + p.cross_attention + p.ffn + p.norm + p.pooler + p.head, p.total)
        << c.name;
  }
}

// Contexts below, at and above the windows of 2 and 3.
TEST(Allocated, Cache) {
  for (const SpecCase& c : spec_cases()) {
    if (c.spec.topology == Topology::kEncoder) {
      ASSERT_EQ(make_plan(c.spec, {.context = 8}).kv_cache.bytes, 0) << c.name;
      continue;
    }
    for (const int64_t context : {1, 2, 3, 4, 40}) {
      for (const int64_t source : {1, 7}) {
        const Plan plan = make_plan(c.spec, {.context = context, .batch = 3, .source_context = source});
        const int64_t source_rows = c.spec.encoder_decoder() ? source : 0;
        ASSERT_EQ(plan.kv_cache.bytes, KvStore(c.spec, 1, context, source_rows).bytes()) << c.name;
        ASSERT_EQ(plan.kv_cache.batch_bytes, KvStore(c.spec, 3, context, source_rows).bytes()) << c.name;
      }
    }
  }
}

// Of the plan. Below: it counts a few floats a row of statistics that are gone at the fullest moment. Above: the arena
// leaves gaps that fit no buffer, most where a layer is computed again.
constexpr double kShort = 0.997, kGaps = 1 + kFragmentation;

double activation_ratio(const ArchSpec& spec, int64_t batch_size, int64_t context, Recompute recompute) {
  ThreadPool pool(1);
  Batch batch;
  batch.layout = equal_sequences(batch_size, context);
  batch.target_count = batch_size * context;
  batch.tokens = batch.targets = random_ids(batch.target_count, spec.vocab_size, 3);
  if (spec.encoder_decoder()) batch.source_layout = batch.layout, batch.source_tokens = batch.tokens;
  const auto model = random_model(spec, true);
  Trainer trainer(*model, pool, {.adamw = {}, .dropout_seed = 4, .recompute = recompute});
  trainer.accumulate({&batch, 1}, 0);
  const Plan plan = make_plan(spec, {.context = context, .batch = batch_size, .recompute = recompute});
  // Each tensor begins on a boundary of its own.
  constexpr int64_t kAlignment = 64;
  const int64_t padding = kAlignment * static_cast<int64_t>(spec.declare().decls().size());
  const auto gradients = static_cast<int64_t>(model->parameters().gradients().size_bytes());
  EXPECT_GE(gradients, plan.memory.gradients);
  EXPECT_LE(gradients, plan.memory.gradients + padding);
  EXPECT_EQ(trainer.optimizer().first_moments().size() + trainer.optimizer().second_moments().size(),
            2 * model->parameters().gradients().size());
  EXPECT_EQ(plan.memory.optimizer, 2 * plan.memory.gradients);
  return static_cast<double>(trainer.activation_peak_bytes()) / static_cast<double>(plan.memory.activations);
}

// Counts, optimizer, cache and activations of every preset that a test can afford.
TEST(Allocated, SmallPresets) {
  constexpr int64_t kAffordable = 16000000, kContext = 64;
  int64_t tried = 0;
  for (const std::string& name : preset_names()) {
    const ArchSpec spec = preset(name);
    const Plan plan = make_plan(spec, {.context = kContext});
    if (plan.parameters.total > kAffordable) continue;
    ++tried;
    EXPECT_EQ(plan.parameters.total, Model(spec).parameters().count()) << name;
    EXPECT_EQ(plan.kv_cache.bytes, KvStore(spec, 1, kContext, 0).bytes()) << name;
    const double ratio = activation_ratio(spec, 32, kContext, Recompute::kNone);
    EXPECT_GT(ratio, kShort) << name;
    EXPECT_LT(ratio, kGaps) << name;
  }
  EXPECT_GE(tried, 8);
}

// Forms whose sublayers keep or free something of their own, with so many rows that the workspace of attention and the
// sums of parameter gradients, which do not grow with them and are not planned, are nothing beside them.
TEST(Allocated, Activations) {
  const Json stack = {{"num_hidden_layers", 3}};
  const Json mla = {{"kind", "mla"},          {"num_attention_heads", 4}, {"kv_lora_rank", 24},
                    {"qk_nope_head_dim", 16}, {"qk_rope_head_dim", 8},    {"v_head_dim", 16}};
  Json with_q_latent = mla;
  with_q_latent["q_lora_rank"] = 32;
  const std::vector<Json> forms = {
      {{"norm", {{"placement", "pre"}}}},
      {{"norm", {{"placement", "post"}}}},
      {{"norm", {{"placement", "post_sublayer"}}}},
      {{"norm", {{"placement", "sandwich"}}}},
      {{"norm", {{"kind", "layernorm"}, {"placement", "sandwich"}}}, {"embedding_norm", true}},
      {{"block", {{"form", "parallel"}}}},
      {{"block", {{"form", "parallel_two_norms"}}}},
      {{"attention", {{"num_attention_heads", 4}, {"qk_norm", "rmsnorm"}}}},
      {{"attention", {{"num_attention_heads", 4}, {"qk_norm", "layernorm"}, {"qk_norm_scope", "all_heads"}}}},
      {{"attention", {{"num_attention_heads", 4}, {"num_key_value_heads", 1}}},
       {"ffn", {{"kind", "gelu"}, {"intermediate_size", 256}}}},
      {{"attention", mla}},
      {{"attention", with_q_latent}, {"norm", {{"placement", "sandwich"}}}},
      {{"moe", {{"num_experts", 8}, {"moe_intermediate_size", 48}}}},
      {{"moe", {{"num_experts", 4}, {"num_experts_per_tok", 1}, {"shared_expert_intermediate_size", 96}}},
       {"norm", {{"placement", "sandwich"}}}},
      {{"moe",
        {{"num_experts", 16},
         {"num_experts_per_tok", 4},
         {"moe_intermediate_size", 16},
         {"shared_expert_intermediate_size", 32},
         {"shared_expert_gate", true}}},
       {"block", {{"form", "parallel"}}}},
      {{"topology", "encoder"}, {"norm", {{"kind", "layernorm"}, {"placement", "post"}}}, {"head_transform", true}},
      {{"topology", "encoder"}, {"head_transform", true}, {"position", {{"kind", "t5"}}}},
      {{"topology", "encoder_decoder"}, {"encoder", stack}, {"decoder", stack}},
      {{"topology", "encoder_decoder"}, {"norm", {{"placement", "post"}}}, {"encoder", stack}, {"decoder", stack}},
      {{"topology", "encoder_decoder"}, {"norm", {{"placement", "sandwich"}}}, {"encoder", stack}, {"decoder", stack}},
  };
  for (const Json& form : forms) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      for (const double dropout : {0.0, 0.1}) {
        Json document = {{"vocab_size", 64},
                         {"hidden_size", 64},
                         {"max_position_embeddings", 64},
                         {"dropout", dropout},
                         {"attention", {{"num_attention_heads", 4}}},
                         {"ffn", {{"intermediate_size", 160}}}};
        if (!form.contains("encoder")) document["num_hidden_layers"] = 3;
        document.update(form);
        const ArchSpec spec = spec_from_json(document, "form");
        const double ratio = activation_ratio(spec, 32, 64, recompute);
        EXPECT_GT(ratio, kShort) << document << " recompute: " << recompute_name(recompute);
        EXPECT_LT(ratio, kGaps) << document << " recompute: " << recompute_name(recompute);
      }
    }
  }
}

}  // namespace
}  // namespace transept
