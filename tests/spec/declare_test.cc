// Names, shapes and totals of declared parameters.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "spec/arch_spec.h"
#include "spec/presets.h"

namespace transept {
namespace {

int64_t total(const ArchSpec& spec) {
  int64_t sum = 0;
  for (const ParamDecl& p : spec.declare().decls()) {
    int64_t elements = 1;
    for (const int64_t extent : p.shape) elements *= extent;
    sum += elements;
  }
  return sum;
}

std::vector<std::string> names(const ArchSpec& spec) {
  std::vector<std::string> all;
  for (const ParamDecl& p : spec.declare().decls()) all.push_back(p.name);
  return all;
}

TEST(Declare, NamesInStorageOrder) {
  Json document = preset_document("llama-3-8b");
  document["num_hidden_layers"] = 1;
  EXPECT_EQ(names(spec_from_json(document, "t")),
            (std::vector<std::string>{"embedding.weight", "layers.0.attention_norm.weight",
                                      "layers.0.attention.qkv.weight", "layers.0.attention.output.weight",
                                      "layers.0.ffn_norm.weight", "layers.0.ffn.gate_up.weight",
                                      "layers.0.ffn.down.weight", "final_norm.weight", "head.weight"}));
  document = preset_document("gpt2");
  document["num_hidden_layers"] = 1;
  EXPECT_EQ(names(spec_from_json(document, "t")),
            (std::vector<std::string>{
                "embedding.weight", "position.weight", "layers.0.attention_norm.weight", "layers.0.attention_norm.bias",
                "layers.0.attention.qkv.weight", "layers.0.attention.qkv.bias", "layers.0.attention.output.weight",
                "layers.0.attention.output.bias", "layers.0.ffn_norm.weight", "layers.0.ffn_norm.bias",
                "layers.0.ffn.up.weight", "layers.0.ffn.up.bias", "layers.0.ffn.down.weight", "layers.0.ffn.down.bias",
                "final_norm.weight", "final_norm.bias"}));
}

TEST(Declare, ScopesAndShapes) {
  const ArchSpec spec = preset("llama-3-8b");
  for (const ParamDecl& p : spec.declare().decls()) {
    if (p.name == "layers.31.attention.qkv.weight") {
      EXPECT_EQ(p.shape, (std::vector<int64_t>{(32 + 16) * 128, 4096}));
      EXPECT_EQ(p.layer, 31);
      EXPECT_EQ(p.part, Part::kAttention);
      EXPECT_TRUE(p.decays());
    }
    if (p.name == "final_norm.weight") {
      EXPECT_EQ(p.layer, -1);
      EXPECT_EQ(p.part, Part::kNorm);
      EXPECT_FALSE(p.decays());
    }
    if (p.name == "head.weight") {
      EXPECT_EQ(p.part, Part::kHead);
    }
  }
}

TEST(Declare, PostNormHasNoFinalNorm) {
  Json document = preset_document("small-1m");
  const int64_t pre = total(spec_from_json(document, "t"));
  document["norm"]["placement"] = "post";
  const ArchSpec post = spec_from_json(document, "t");
  EXPECT_FALSE(post.has_final_norm());
  EXPECT_EQ(total(post), pre - 128);
}

// A table that any count would satisfy checks nothing: one bias less, one head matrix more must be seen.
TEST(Declare, TotalsNoticeABias) {
  Json document = preset_document("gpt2");
  document["attention"]["output_bias"] = false;
  EXPECT_EQ(total(spec_from_json(document, "t")), 124439808 - 12 * 768);
  document = preset_document("gpt2");
  document["tie_word_embeddings"] = false;
  EXPECT_EQ(total(spec_from_json(document, "t")), 124439808 + 50257 * 768);
}

// Published counts, as far as there are any; the others are those of the same form with other numbers.
TEST(Declare, TotalsOfPresets) {
  const std::pair<const char*, int64_t> known[] = {
      {"bart-base", 139420416},
      {"bart-large", 406291456},
      {"bench-a", 512 * 384 + 384 + 6 * (768 + 640 * 384 + 384 * 384 + 3 * 1024 * 384)},
      {"bench-b", 8192 * 512 + 512 + 8 * (1024 + 768 * 512 + 512 * 512 + 3 * 1408 * 512)},
      {"bench-c", 512 * 384 + 384 + 6 * (768 + 4 * 384 * 384 + 3 * 1024 * 384)},
      {"bench-mla", 512 * 2048 + 2048 + 2 * 2048 + (16 * 192 + 512 + 64) * 2048 + 512 + 16 * (128 + 128) * 512 +
                        16 * 128 * 2048 + 3 * 64 * 2048},
      // As published without a masked-LM head, 109,482,240, and that head: transform, norm, bias.
      {"bert-base", 109482240 + 768 * 768 + 3 * 768 + 30522},
      {"bert-large", 336224058},
      {"bloom", 176247271424},
      {"bloom-1b1", 1065314304},
      {"bloom-1b7", 1722408960},
      {"bloom-3b", 3002557440},
      {"bloom-560m", 559214592},
      {"bloom-7b1", 7069016064},
      {"codellama-34b", 33743970304},
      {"command-r", 34980831232},
      {"command-r-plus", 103810674688},
      {"dbrx", 131596523520},
      {"deepseek-llm-67b", 67425001472},
      {"deepseek-llm-7b", 6910365696},
      {"deepseek-moe-16b", 16375728128},
      {"deepseek-v2", 235741434880},
      {"deepseek-v2-lite", 15706484224},
      {"deepseek-v3", 671026419200},
      {"falcon-7b", 6921720704},
      {"gemma-2-27b", 27227128320},
      {"gemma-2-2b", 2614341888},
      {"gemma-2-9b", 9241705984},
      {"gemma-2b", 2506172416},
      {"gemma-3-12b", 11766034176},
      {"gemma-3-1b", 999885952},
      {"gemma-3-27b", 27009346304},
      {"gemma-3-4b", 3880263168},
      {"gemma-7b", 8537680896},
      {"gpt-3-175b", 174604259328},
      {"gpt-j-6b", 6050882784},
      {"gpt-neox-20b", 20554567680},
      {"gpt-oss-120b", 116829156672},
      {"gpt-oss-20b", 20914757184},
      {"gpt2", 124439808},
      {"gpt2-large", 774030080},
      {"gpt2-medium", 354823168},
      {"gpt2-xl", 1557611200},
      {"llama-13b", 13015864320},
      {"llama-2-13b", 13015864320},
      {"llama-2-70b", 68976648192},
      {"llama-2-7b", 6738415616},
      {"llama-3-70b", 70553706496},
      {"llama-3-8b", 8030261248},
      {"llama-3.1-405b", 405853388800},
      {"llama-3.1-70b", 70553706496},
      {"llama-3.1-8b", 8030261248},
      {"llama-3.2-1b", 1235814400},
      {"llama-3.2-3b", 3212749824},
      {"llama-30b", 32528943616},
      {"llama-65b", 65285660672},
      {"llama-7b", 6738415616},
      {"mistral-7b", 7241732096},
      {"mistral-7b-v0.3", 7248023552},
      {"mistral-nemo-12b", 12247782400},
      {"mixtral-8x22b", 140620634112},
      {"mixtral-8x7b", 46702792704},
      {"mpt-30b", 29957200896},
      {"mpt-7b", 6649286656},
      {"nanogpt-cpu", 512 * 128 + 64 * 128 + 128 + 4 * (256 + 4 * 128 * 128 + 8 * 128 * 128)},
      {"nanogpt-shakespeare-char", 10745088},
      {"olmo-1b", 1279787008},
      {"olmo-2-13b", 13716198400},
      {"olmo-2-1b", 1484916736},
      {"olmo-2-7b", 7298617344},
      {"olmo-7b", 6888095744},
      {"olmoe-1b-7b", 6919161856},
      {"opt-1.3b", 1315758080},
      {"opt-125m", 125239296},
      {"opt-13b", 12853473280},
      {"opt-2.7b", 2651596800},
      {"opt-30b", 29974540288},
      {"opt-6.7b", 6658473984},
      {"opt-66b", 65719701504},
      {"palm-540b", 540356474880},
      {"palm-62b", 62495662080},
      {"palm-8b", 8632012800},
      {"phi-2", 2779683840},
      {"phi-3-medium-4k", 13960238080},
      {"phi-3-mini-4k", 3821079552},
      {"pythia-1.4b", 1414647808},
      {"pythia-12b", 11846072320},
      {"pythia-160m", 162322944},
      {"pythia-1b", 1011781632},
      {"pythia-2.8b", 2775208960},
      {"pythia-410m", 405334016},
      {"pythia-6.9b", 6857302016},
      {"pythia-70m", 70426624},
      {"qwen1.5-7b", 7721324544},
      {"qwen1.5-moe-a2.7b", 14315784192},
      {"qwen2-0.5b", 494032768},
      {"qwen2-1.5b", 1543714304},
      {"qwen2-72b", 72706203648},
      {"qwen2-7b", 7615616512},
      {"qwen2.5-0.5b", 494032768},
      {"qwen2.5-1.5b", 1543714304},
      {"qwen2.5-14b", 14770033664},
      {"qwen2.5-32b", 32763876352},
      {"qwen2.5-3b", 3085938688},
      {"qwen2.5-72b", 72706203648},
      {"qwen2.5-7b", 7615616512},
      {"qwen3-0.6b", 596049920},
      {"qwen3-1.7b", 1720574976},
      {"qwen3-14b", 14768307200},
      {"qwen3-235b-a22b", 235093634560},
      {"qwen3-30b-a3b", 30532122624},
      {"qwen3-32b", 32762123264},
      {"qwen3-4b", 4022468096},
      {"qwen3-8b", 8190735360},
      {"roberta-base", 124697433},
      {"roberta-large", 355412057},
      {"small-10m", 512 * 384 + 384 + 6 * (768 + 640 * 384 + 384 * 384 + 3 * 1024 * 384)},
      {"small-135m", 134515008},
      {"small-1m", 512 * 128 + 128 + 6 * (256 + 256 * 128 + 128 * 128 + 3 * 288 * 128)},
      {"small-30m", 512 * 512 + 512 + 10 * (1024 + 768 * 512 + 512 * 512 + 3 * 1536 * 512)},
      {"small-3m", 512 * 192 + 192 + 8 * (384 + 320 * 192 + 192 * 192 + 3 * 512 * 192)},
      {"small-mla",
       512 * 128 + 128 + 6 * (256 + (4 * 40 + 32 + 8) * 128 + 32 + 4 * (32 + 32) * 32 + 4 * 32 * 128 + 3 * 288 * 128)},
      {"small-moe", 512 * 192 + 192 + 4 * (384 + 320 * 192 + 192 * 192 + 16 * 192 + 16 * 3 * 256 * 192)},
      {"small-moe-fine", 512 * 192 + 192 + 4 * (384 + 320 * 192 + 192 * 192) + 3 * 512 * 192 +
                             3 * (32 * 192 + 32 + 32 * 3 * 96 * 192 + 3 * 128 * 192)},
      {"smollm2-1.7b", 1711376384},
      {"smollm2-135m", 134515008},
      {"smollm2-360m", 361821120},
      {"starcoder2-15b", 15957889024},
      {"starcoder2-3b", 3030371328},
      {"starcoder2-7b", 7173923840},
      {"stories-110m", 109529856},
      {"stories-15m", 15191712},
      {"stories-260k", 260032},
      {"stories-42m", 41689600},
      {"t5-11b", 11307321344},
      {"t5-3b", 2851598336},
      {"t5-base", 222903552},
      {"t5-large", 737668096},
      {"t5-small", 60506624},
      {"t5-v1.1-base", 247577856},
      {"t5-v1.1-large", 783150080},
      {"t5-v1.1-small", 76961152},
      {"t5-v1.1-xl", 2849757184},
      {"t5-v1.1-xxl", 11135332352},
      {"tinyllama-1.1b", 1100048384},
      {"transformer-base", 63045632},
      {"yi-34b", 34388917248},
      {"yi-6b", 6061035520},
  };
  for (const auto& [name, count] : known) EXPECT_EQ(total(preset(name)), count) << name;
  EXPECT_EQ(std::size(known), preset_names().size()) << "a preset without a known total";
}

// A LayerNorm of queries and keys multiplies by its weights as they are, whatever the layer's own norm does.
TEST(Declare, QkNormsBeginAtTheIdentity) {
  for (const bool unit_offset : {false, true}) {
    for (const char* kind : {"rmsnorm", "layernorm"}) {
      const ArchSpec spec = spec_from_json({{"vocab_size", 8},
                                            {"hidden_size", 8},
                                            {"max_position_embeddings", 8},
                                            {"norm", {{"unit_offset", unit_offset}}},
                                            {"attention", {{"num_attention_heads", 2}, {"qk_norm", kind}}},
                                            {"ffn", {{"intermediate_size", 8}}},
                                            {"num_hidden_layers", 1}},
                                           "t");
      int found = 0;
      for (const ParamDecl& p : spec.declare().decls()) {
        if (!p.name.ends_with("q_norm.weight") && !p.name.ends_with("k_norm.weight")) continue;
        ++found;
        EXPECT_EQ(p.init, unit_offset && std::string(kind) == "rmsnorm" ? Init::kZeros : Init::kOnes) << p.name;
      }
      EXPECT_EQ(found, 2);
    }
  }
}

TEST(Declare, LatentAttention) {
  Json d = {{"vocab_size", 8},
            {"hidden_size", 12},
            {"max_position_embeddings", 8},
            {"norm", {{"unit_offset", true}}},
            {"attention",
             {{"kind", "mla"},
              {"num_attention_heads", 3},
              {"kv_lora_rank", 7},
              {"qk_nope_head_dim", 5},
              {"qk_rope_head_dim", 2},
              {"v_head_dim", 4}}},
            {"ffn", {{"intermediate_size", 8}}},
            {"num_hidden_layers", 1}};
  const auto declared = [&] {
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const ParamDecl& p : spec_from_json(d, "t").declare().decls()) {
      if (p.part != Part::kAttention) continue;
      shapes[p.name.substr(std::string("layers.0.attention.").size())] = p.shape;
      const bool zeros = p.name.ends_with("norm.weight") || p.name.ends_with("bias");  // the norm has a unit offset
      EXPECT_EQ(p.init == Init::kZeros, zeros) << p.name;
    }
    return shapes;
  };
  using Shapes = std::map<std::string, std::vector<int64_t>>;
  EXPECT_EQ(declared(), (Shapes{{"q.weight", {21, 12}},
                                {"kv_down.weight", {9, 12}},
                                {"kv_norm.weight", {7}},
                                {"kv_up.weight", {27, 7}},
                                {"output.weight", {12, 12}}}));
  d["attention"]["q_lora_rank"] = 6;
  d["attention"]["bias"] = true;
  EXPECT_EQ(declared(), (Shapes{{"q_down.weight", {6, 12}},
                                {"q_down.bias", {6}},
                                {"q_norm.weight", {6}},
                                {"q_up.weight", {21, 6}},
                                {"kv_down.weight", {9, 12}},
                                {"kv_down.bias", {9}},
                                {"kv_norm.weight", {7}},
                                {"kv_up.weight", {27, 7}},
                                {"output.weight", {12, 12}},
                                {"output.bias", {12}}}));
}

}  // namespace
}  // namespace transept
