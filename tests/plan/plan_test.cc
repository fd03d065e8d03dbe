// Counts against known models and closed forms written out by hand.
#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "plan/count.h"
#include "spec/presets.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

Plan plan_of(const ArchSpec& spec, int64_t context, const std::string& dtype = "bf16") {
  return make_plan(spec, {.context = context, .batch = 1, .dtype = dtype});
}

// Qwen3-4B's shape without its query and key norms, which have 2 x 128 weights a layer: head_dim is not hidden_size /
// heads.
TEST(Plan, HeadDimOfItsOwn) {
  const ArchSpec spec =
      spec_from_json({{"vocab_size", 151936},
                      {"hidden_size", 2560},
                      {"max_position_embeddings", 32768},
                      {"num_hidden_layers", 36},
                      {"attention", {{"num_attention_heads", 32}, {"num_key_value_heads", 8}, {"head_dim", 128}}},
                      {"ffn", {{"intermediate_size", 9728}}}},
                     "t");
  const Plan p = plan_of(spec, 0);
  EXPECT_EQ(p.context, 32768);
  EXPECT_EQ(p.parameters.total, int64_t{4022468096} - 36 * 2 * 128);
  EXPECT_EQ(p.kv_cache.bytes_per_token, 147456);
}

TEST(Plan, CacheOfLlama3) {
  const Plan p = plan_of(preset("llama-3-8b"), 32768);
  EXPECT_EQ(p.kv_cache.bytes_per_token, 131072);
  EXPECT_EQ(p.kv_cache.bytes, int64_t{4} << 30);
  const Plan mixed = make_plan(preset("llama-3-8b"), {.context = 1024, .batch = 3, .dtype = "bf16", .kv_dtype = "f32"});
  EXPECT_EQ(mixed.kv_cache.bytes_per_token, 262144);
  EXPECT_EQ(mixed.kv_cache.batch_bytes, 3 * mixed.kv_cache.bytes);
  EXPECT_EQ(mixed.memory.weights, 2 * mixed.parameters.total);
}

// DeepSeek-V2-Lite's attention keeps 512 + 64 elements a token and layer (arXiv:2405.04434, appendix B), where heads
// with keys and values of their own keep 16 * (192 + 128).
TEST(Plan, LatentsAreWhatIsCached) {
  const Plan plan = make_plan(preset("bench-mla"), {.context = 8192, .kv_dtype = "bf16"});
  EXPECT_EQ(plan.kv_cache.elements_per_token, 576);
  EXPECT_EQ(plan.kv_cache.bytes, 8192 * 576 * 2);
  // The paper's 9/2 d_h against 2 n_h d_h (table 1): as 2.25 KV heads of 128 would keep.
  EXPECT_EQ(plan.kv_cache.multi_head_elements_per_token, 2 * 16 * 128);
  EXPECT_EQ(make_plan(preset("deepseek-v2"), {.context = 64}).kv_cache.multi_head_elements_per_token,
            60 * 2 * 128 * 128);
  EXPECT_EQ(make_plan(preset("llama-3-8b"), {.context = 64}).kv_cache.multi_head_elements_per_token, 4 * 65536);
  // Mean over a causal context of scores and weighted sums of expanded heads.
  EXPECT_DOUBLE_EQ(plan.flops.attention_forward_per_token, 2 * 16 * (192 + 128) * (8192 + 1) / 2.0);
}

TEST(Plan, WindowsAreCountedExactly) {
  Json d = preset_document("small-1m");
  d.erase("num_hidden_layers");
  d["layers"] = {{{"repeat", 2}, {"attention", {{"sliding_window", 5}}}}, {{"repeat", 1}}};
  const ArchSpec spec = spec_from_json(d, "t");
  for (const int64_t context : {1, 4, 5, 6, 17}) {
    const Plan p = plan_of(spec, context, "f32");
    int64_t windowed = 0, full = 0;
    for (int64_t t = 1; t <= context; ++t) {
      windowed += std::min<int64_t>(t, 5);
      full += t;
    }
    EXPECT_DOUBLE_EQ(p.flops.attention_forward_per_token * static_cast<double>(context),
                     static_cast<double>(4 * 128 * (2 * windowed + full)));
    EXPECT_EQ(p.kv_cache.bytes, 4 * 128 * (2 * std::min<int64_t>(context, 5) + context));
  }
  const Plan p = plan_of(spec, 17, "f32");
  ASSERT_EQ(p.parameters.layers.size(), 2u);
  EXPECT_EQ(p.parameters.layers[0].count, 2);
  EXPECT_EQ(p.parameters.layers[0].sliding_window, 5);
  EXPECT_EQ(p.parameters.layers[1].first, 2);
  EXPECT_EQ(p.parameters.layers[1].sliding_window, 0);
}

TEST(Plan, PartsAddUp) {
  for (const std::string& name : preset_names()) {
    const Plan p = make_plan(preset(name), {});
    const ParameterCounts& q = p.parameters;
    EXPECT_EQ(q.embedding + q.position + q.attention + q.cross_attention + q.ffn + q.norm + q.pooler + q.head, q.total)
        << name;
    int64_t layers = 0, count = 0;
    for (const LayerGroup& l : q.layers) {
      layers += l.count * (l.attention + l.cross_attention + l.ffn + l.norm);
      count += l.count;
    }
    EXPECT_EQ(count, static_cast<int64_t>(preset(name).encoder.layers.size() + preset(name).layers.size()));
    EXPECT_LE(layers, q.attention + q.cross_attention + q.ffn + q.norm);
    EXPECT_EQ(p.memory.gradients, 4 * q.total);
    EXPECT_EQ(p.memory.optimizer, 8 * q.total);
    EXPECT_EQ(p.memory.peak_training, 16 * q.total + p.memory.activations);
    EXPECT_EQ(p.memory.peak_inference, 4 * q.total + p.kv_cache.bytes + p.memory.inference_workspace);
    EXPECT_EQ(p.chinchilla.tokens, 20 * q.total);
  }
}

// Cache and matrices of published models with windows, parallel blocks, tied and biased heads.
TEST(Plan, CacheAndMatricesOfPresets) {
  const struct {
    const char* name;
    int64_t elements_per_token, cache_bytes_bf16_at_32768, linear_flops;
  } known[] = {
      {"gemma-2-2b", 53248, 1962934272, 5228199936},
      {"gemma-2-9b", 172032, 6341787648, 18482200576},
      {"gemma-3-1b", 13312, 145752064, 1999503360},
      {"gemma-3-4b", 69632, 792723456, 7759790080},
      {"falcon-7b", 4096, 268435456, 13842841600},
      {"gpt-j-6b", 229376, 15032385536, 11687165952},
      {"pythia-1b", 65536, 4294967296, 1816657920},
      {"bloom-560m", 49152, 3221225472, 1117782016},
      {"bloom-7b1", 245760, 16106127360, 14134804480},
      {"command-r", 655360, 42949672960, 69960990720},
      {"phi-2", 163840, 10737418240, 5295308800},
      {"phi-3-mini-4k", 196608, 804913152, 7444758528},
      {"qwen2-0.5b", 6144, 402653184, 987922432},
      {"qwen3-0.6b", 57344, 3758096384, 1191968768},
      {"qwen3-32b", 131072, 8589934592, 63967068160},
      {"olmo-1b", 65536, 4294967296, 2353528832},
      {"llama-3.1-405b", 258048, 16911433728, 807495794688},
      {"smollm2-135m", 11520, 754974720, 268959744},
  };
  for (const auto& k : known) {
    const Plan p = make_plan(preset(k.name), {.context = 32768, .kv_dtype = "bf16"});
    EXPECT_EQ(p.kv_cache.elements_per_token, k.elements_per_token) << k.name;
    EXPECT_EQ(p.kv_cache.bytes, k.cache_bytes_bf16_at_32768) << k.name;
    EXPECT_EQ(p.flops.linear_forward_per_token, k.linear_flops) << k.name;
  }
}

// T5 small, 8 heads of 64 in 6 layers a stack: the two caches, and a decode step that reads neither the encoder nor
// what makes keys and values of the source.
TEST(Plan, EncoderDecoder) {
  PlanOptions options{.context = 100, .batch = 1};
  options.source_context = 300;
  const Plan p = make_plan(preset("t5-small"), options);
  EXPECT_EQ(p.parameters.total, 60506624);
  EXPECT_EQ(p.kv_cache.elements_per_token, 6144);
  EXPECT_EQ(p.kv_cache.source_elements_per_token, 6144);
  EXPECT_EQ(p.kv_cache.bytes, 4 * 6144 * (100 + 300));
  const int64_t encoder = 6 * (4 * 512 * 512 + 2 * 512 * 2048), decoder = 6 * (8 * 512 * 512 + 2 * 512 * 2048);
  const int64_t head = 32128 * 512, source_kv = 6 * 2 * 512 * 512;
  EXPECT_EQ(p.flops.linear_forward_per_token, 2 * (encoder + decoder + head));
  // Six layers each of the encoder's 300 keys, the decoder's mean of 50.5, and the source's 300.
  EXPECT_DOUBLE_EQ(p.flops.attention_forward_per_token, 4.0 * 512 * 6 * (300 + 50.5 + 300));
  EXPECT_DOUBLE_EQ(p.serving.flops_per_decoded_token,
                   2.0 * static_cast<double>(decoder - source_kv + head) + 4.0 * 512 * 6 * (100 + 300));
  const int64_t encoder_rest = 32 * 8 + 13 * 512;  // biases by distance, norms
  EXPECT_EQ(p.serving.weight_bytes_per_step, 4 * (60506624 - encoder - encoder_rest - source_kv));
  // The source's default is the target's length.
  EXPECT_EQ(make_plan(preset("t5-small"), {.context = 100}).source_context, 100);
}

TEST(Plan, AnEncoderSeesBothWaysAndCachesNothing) {
  const Plan p = make_plan(preset("bert-base"), {.context = 128});
  EXPECT_EQ(p.kv_cache.bytes, 0);
  EXPECT_DOUBLE_EQ(p.flops.attention_forward_per_token, 4.0 * 768 * 12 * 128);
  // Windows of 3 over 5 tokens, one-sided 1 2 3 3 3, two-sided 3 4 5 4 3.
  Json d = preset_document("bert-base");
  d["attention"]["sliding_window"] = 3;
  EXPECT_DOUBLE_EQ(make_plan(spec_from_json(d, "t"), {.context = 5}).flops.attention_forward_per_token,
                   4.0 * 768 * 12 * (3 + 4 + 5 + 4 + 3) / 5);
}

TEST(Plan, Serving) {
  const ArchSpec spec = preset("mistral-7b");
  const Plan p = make_plan(spec, {.context = 8192, .batch = 2, .dtype = "bf16", .memory_bytes = int64_t{24} << 30});
  const int64_t read = 7241732096 - 32000 * 4096;
  EXPECT_EQ(p.serving.weight_bytes_per_step, 2 * read);
  EXPECT_EQ(p.serving.kv_bytes_per_decoded_token, int64_t{4096} * 131072);
  EXPECT_DOUBLE_EQ(p.serving.bytes_per_decoded_token, static_cast<double>(read) + 4096.0 * 131072 + 2 * 4096);
  EXPECT_DOUBLE_EQ(p.serving.flops_per_decoded_token, 14220787712.0 + 524288.0 * 4096);
  EXPECT_DOUBLE_EQ(p.serving.arithmetic_intensity,
                   p.serving.flops_per_decoded_token / p.serving.bytes_per_decoded_token);
  // The largest batch fits by the planner's own peak, one more does not.
  const int64_t best = p.serving.largest_batch;
  ASSERT_GT(best, 1);
  const auto peak = [&](int64_t batch) {
    return make_plan(spec, {.context = 8192, .batch = batch, .dtype = "bf16"}).memory.peak_inference;
  };
  EXPECT_LE(peak(best), int64_t{24} << 30);
  EXPECT_GT(peak(best + 2), int64_t{24} << 30);
  EXPECT_EQ(make_plan(spec, {.context = 8192, .dtype = "bf16", .memory_bytes = 1 << 30}).serving.largest_batch, 0);
}

TEST(Plan, RefusesBadOptions) {
  const ArchSpec spec = preset("gpt2");
  const auto error = [&](const PlanOptions& options) {
    try {
      make_plan(spec, options);
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(error({.context = -1}), HasSubstr("context: got -1; allowed: 1 to"));
  EXPECT_THAT(error({.batch = 0}), HasSubstr("batch: got 0"));
  EXPECT_THAT(error({.batch = std::numeric_limits<int64_t>::max()}), HasSubstr("batch: got"));
  EXPECT_THAT(error({.dtype = "f31"}), HasSubstr("dtype: none is named \"f31\"; allowed: f32, bf16, f16"));
  EXPECT_THAT(error({.dtype = "f32", .kv_dtype = "x"}), HasSubstr("kv-dtype: none is named"));
  EXPECT_THAT(error({.context = 1025}), HasSubstr("context: 1025 tokens, and the table of positions ends at 1024"));
  EXPECT_EQ(error({.context = 1024}), "");
}

TEST(Plan, RefusesToOverflow) {
  try {
    make_plan(preset("llama-3-8b"), {.context = int64_t{1} << 30, .batch = int64_t{1} << 40});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("does not fit 64 bits"));
  }
  // The largest model that a spec may describe has a plan.
  const ArchSpec spec = spec_from_json({{"vocab_size", 2},
                                        {"hidden_size", 1 << 20},
                                        {"max_position_embeddings", 1},
                                        {"num_hidden_layers", 1},
                                        {"attention", {{"num_attention_heads", 1}, {"head_dim", 2}}},
                                        {"ffn", {{"kind", "relu"}, {"intermediate_size", 1 << 30}}}},
                                       "t");
  EXPECT_EQ(make_plan(spec, {}).parameters.ffn, int64_t{1} << 51);
  EXPECT_THROW(Count(int64_t{1} << 62) + Count(int64_t{1} << 62), InputError);
  EXPECT_THROW(Count(int64_t{1} << 32) * Count(int64_t{1} << 32), InputError);
}

TEST(Plan, JsonHasTheFixedKeys) {
  const Json j = to_json(make_plan(preset("llama-3-8b"), {.context = 4096, .dtype = "bf16"}));
  for (const char* pointer : {"/parameters/total",
                              "/parameters/active",
                              "/parameters/embedding",
                              "/parameters/active_without_input_embedding",
                              "/kv_cache/elements_per_token",
                              "/kv_cache/bytes_per_token",
                              "/kv_cache/bytes",
                              "/flops/linear_forward_per_token",
                              "/flops/attention_forward_per_token",
                              "/flops/train_per_token",
                              "/memory/weights",
                              "/memory/gradients",
                              "/memory/optimizer",
                              "/memory/activations",
                              "/memory/peak_training",
                              "/memory/peak_inference",
                              "/chinchilla/tokens",
                              "/chinchilla/train_flops",
                              "/serving/bytes_per_decoded_token",
                              "/serving/arithmetic_intensity"}) {
    ASSERT_TRUE(j.contains(Json::json_pointer(pointer))) << pointer;
    EXPECT_TRUE(j[Json::json_pointer(pointer)].is_number()) << pointer;
  }
  EXPECT_EQ(j["parameters"]["total"], 8030261248);
  EXPECT_TRUE(j["flops"]["train_per_token"].is_number_integer());
  EXPECT_FALSE(j["serving"].contains("largest_batch"));
}

TEST(Plan, TextHasTheNumbers) {
  const std::string text = to_text(make_plan(
      preset("mistral-7b"), {.context = 8192, .batch = 2, .dtype = "bf16", .memory_bytes = int64_t{80} << 30}));
  for (const char* part : {"7,241,732,096", "window of 4096", "512 MiB", "13.5 GiB", "largest batch in 80.0 GiB"})
    EXPECT_THAT(text, HasSubstr(part));
}

// One token touches the experts it is sent to; a large batch touches them all.
TEST(Plan, ExpertsThatABatchTouches) {
  const ArchSpec spec = preset("mixtral-8x7b");
  const auto bytes = [&](int64_t batch) {
    return make_plan(spec, {.context = 64, .batch = batch}).serving.weight_bytes_per_step;
  };
  const int64_t expert = 32 * 3 * int64_t{4096} * 14336 * 4;
  EXPECT_EQ(bytes(1), 12748853248 * 4);
  EXPECT_NEAR(static_cast<double>(bytes(2)), static_cast<double>(bytes(1)) + 1.5 * static_cast<double>(expert), 8);
  EXPECT_EQ(bytes(1000), (46702792704 - 131072000) * 4);
}

}  // namespace
}  // namespace transept
