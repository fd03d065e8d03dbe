// Model folders: what is written is read back bit for bit, in the family's form or our own, and damaged folders are
// refused by name.
#include "convert/model_folder.h"

#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "ckpt/safetensors.h"
#include "convert/family.h"
#include "spec/presets.h"
#include "support/goldens.h"
#include "support/temp_folder.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json tiny(const char* text) {
  Json document = parse_json(
      R"({"vocab_size": 40, "hidden_size": 24, "max_position_embeddings": 32, "num_hidden_layers": 2})", "tiny");
  const Json groups = parse_json(text, "tiny");
  if (groups.contains("layers")) document.erase("num_hidden_layers");
  document.update(groups);
  return document;
}

const char* const kLlama =
    R"({"norm": {"kind": "rmsnorm"}, "position": {"kind": "rope"}, "attention": {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 6},
  "ffn": {"kind": "swiglu", "intermediate_size": 30}})";
const char* const kGpt2 =
    R"({"norm": {"kind": "layernorm"}, "position": {"kind": "learned"}, "attention": {"num_attention_heads": 4, "qkv_bias": true, "output_bias": true},
  "ffn": {"kind": "gelu_tanh", "intermediate_size": 30, "bias": true}})";

struct SavedCase {
  const char* name;
  const char* text;
  const char* model_type;
};

class SavedModel : public ::testing::TestWithParam<SavedCase> {};

TEST_P(SavedModel, ComesBackBitForBit) {
  const ArchSpec spec = spec_from_json(tiny(GetParam().text), "test");
  ThreadPool pool(1);
  Model model(spec);
  model.parameters().initialize(spec, 7, pool);
  const TempFolder folder;
  save_model(model, folder.path());
  EXPECT_EQ(read_json(folder.path() / "config.json").at("model_type"), GetParam().model_type);
  const auto again = load_model(folder.path());
  ASSERT_EQ(again->parameters().entries().size(), model.parameters().entries().size());
  for (const auto& e : model.parameters().entries()) {
    const auto* other = again->parameters().find(e.decl.name);
    ASSERT_NE(other, nullptr) << e.decl.name;
    EXPECT_EQ(other->decl.shape, e.decl.shape);
    const auto a = model.parameters().values(e), b = again->parameters().values(*other);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0) << e.decl.name;
  }
  EXPECT_EQ(spec_to_json(again->spec()).at("attention"), spec_to_json(spec).at("attention"));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, SavedModel,
    ::testing::Values(
        SavedCase{"llama", kLlama, "llama"}, SavedCase{"gpt2", kGpt2, "gpt2"},
        SavedCase{"untied", R"({"tie_word_embeddings": false, "norm": {"kind": "rmsnorm"}, "position": {"kind": "rope"},
                        "attention": {"num_attention_heads": 4, "qkv_bias": true, "output_bias": true}, "ffn": {"kind": "swiglu", "intermediate_size": 30, "bias": true}})",
                  "llama"},
        SavedCase{
            "window",
            R"({"norm": {"kind": "rmsnorm"}, "position": {"kind": "rope"}, "attention": {"num_attention_heads": 4, "sliding_window": 5},
                        "ffn": {"kind": "swiglu", "intermediate_size": 30}})",
            "mistral"},
        SavedCase{"own",
                  R"({"norm": {"kind": "layernorm", "bias": false, "placement": "post"}, "position": {"kind": "none"},
                        "attention": {"num_attention_heads": 4}, "ffn": {"kind": "relu", "intermediate_size": 30}})",
                  "transept"},
        SavedCase{
            "layers",
            R"({"norm": {"kind": "rmsnorm"}, "position": {"kind": "rope"}, "attention": {"num_attention_heads": 4}, "ffn": {"kind": "swiglu", "intermediate_size": 30},
                        "layers": [{"repeat": 1}, {"ffn": {"intermediate_size": 20}}]})",
            "transept"}),
    [](const auto& c) { return std::string(c.param.name); });

// Rows of positions that no token reads are a matter of the form: BART has two, whether the model has none, one or
// three, and GPT-2 none.
TEST(UnreadRows, AreThoseOfTheForm) {
  Json document = tiny(kGpt2);
  document["topology"] = "encoder_decoder";
  document["embedding_norm"] = true;
  document["norm"]["placement"] = "post";
  for (const char* stack : {"encoder", "decoder"}) document[stack] = {{"num_hidden_layers", 1}};
  document.erase("num_hidden_layers");
  ThreadPool pool(1);
  for (const int64_t offset : {0, 1, 2, 3}) {
    document["position"]["offset"] = offset;
    const ArchSpec spec = spec_from_json(document, "test");
    Model model(spec);
    model.parameters().initialize(spec, 7, pool);
    const TempFolder folder;
    save_model(model, folder.path());
    EXPECT_EQ(read_model_type(folder.path()), "bart") << offset;
    EXPECT_EQ(SafetensorsCheckpoint(folder.path()).find("model.encoder.embed_positions.weight")->shape[0], 32 + 2);
    Model again(spec);
    load_weights(again, folder.path());
    for (const char* name : {"position.weight", "encoder.position.weight"}) {
      const auto read = [&](Model& m) {
        const std::span<const float> all = m.parameters().values(*m.parameters().find(name));
        return std::vector<float>(all.begin() + offset * 24, all.end());
      };
      EXPECT_EQ(read(again), read(model)) << name << " with " << offset;
    }
  }
  Json gpt = tiny(kGpt2);
  gpt["position"]["offset"] = 2;
  EXPECT_NE(model_config(spec_from_json(gpt, "test")).at("model_type"), "gpt2");
}

// A saved tiny LLaMA whose files a test then damages.
class Damaged : public ::testing::Test {
 protected:
  void SetUp() override {
    const ArchSpec spec = spec_from_json(tiny(kLlama), "test");
    ThreadPool pool(1);
    Model model(spec);
    model.parameters().initialize(spec, 7, pool);
    save_model(model, folder_.path());
    config_ = read_json(folder_.path() / "config.json");
  }
  void set(const char* key, Json value) {
    config_[key] = std::move(value);
    write_file_atomic(folder_.path() / "config.json", config_.dump());
  }
  std::string refusal() {
    try {
      load_model(folder_.path());
    } catch (const InputError& e) {
      return e.what();
    }
    return "nothing was refused";
  }
  // Writes the tensors again after `change`.
  void rewrite(const std::function<void(std::vector<TensorToStore>&)>& change) {
    std::vector<TensorToStore> tensors;
    std::vector<std::vector<float>> values;
    {
      const SafetensorsCheckpoint checkpoint(folder_.path());
      for (const StoredTensor* t : checkpoint.tensors()) {
        values.emplace_back(static_cast<size_t>(t->elements()));
        read_f32(*t, values.back(), t->name);
        tensors.push_back({t->name, DType::kF32, t->shape, nullptr});
      }
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
    change(tensors);
    write_safetensors(folder_.path() / "model.safetensors", tensors);
  }

  TempFolder folder_;
  Json config_;
};

TEST_F(Damaged, ConfigKeysThatWouldChangeTheNumbers) {
  set("rope_scaling", {{"rope_type", "spiral"}, {"factor", 4.0}});
  set("mystery_scale", 2.5);
  set("hidden_act", "tanh");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("rope_scaling.rope_type"), HasSubstr("mystery_scale"), HasSubstr("hidden_act")));
}

TEST_F(Damaged, ConfigKeysThatDoNot) {
  set("some_flag", false);
  set("another", nullptr);
  set("use_cache", true);
  EXPECT_EQ(refusal(), "nothing was refused");
}

// Its counts are known all the same.
TEST_F(Damaged, QuantizedWeights) {
  set("quantization_config", {{"quant_method", "mxfp4"}});
  EXPECT_EQ(read_model_spec(folder_.path()).hidden_size, 24);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("config.json: quantization_config: the weights are quantized (mxfp4)"),
                               HasSubstr("read as f32, f16 or bf16")));
  set("quantization_config", nullptr);
  EXPECT_EQ(refusal(), "nothing was refused");
}

TEST_F(Damaged, MissingExtraAndMisshapenTensorsAreNamed) {
  const std::vector<float> zeros(24, 0.f);
  rewrite([&](std::vector<TensorToStore>& t) {
    std::erase_if(t, [](const auto& x) { return x.name == "model.layers.1.mlp.up_proj.weight"; });
    t.push_back({"model.layers.9.extra.weight", DType::kF32, {24}, zeros.data()});
    for (auto& x : t) {
      if (x.name == "model.norm.weight") x.shape = {4, 6};
    }
  });
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.layers.1.mlp.up_proj.weight: is missing"),
                               HasSubstr("model.layers.9.extra.weight"),
                               HasSubstr("model.norm.weight: has shape [4, 6]; config.json asks for [24]")));
}

// B19: tied and absent, tied and redundant, untied and absent.
TEST_F(Damaged, TheHeadAndTheTieFlag) {
  std::vector<float> copy(40 * 24);
  SafetensorsCheckpoint(folder_.path()).read_f32("model.embed_tokens.weight", copy);
  rewrite([&](std::vector<TensorToStore>& t) { t.push_back({"lm_head.weight", DType::kF32, {40, 24}, copy.data()}); });
  EXPECT_EQ(refusal(), "nothing was refused");
  copy[5] += 1;
  rewrite([&](std::vector<TensorToStore>& t) {
    for (auto& x : t) {
      if (x.name == "lm_head.weight") x.data = copy.data();
    }
  });
  EXPECT_THAT(refusal(), HasSubstr("lm_head.weight: differs from the embedding"));
  rewrite([](std::vector<TensorToStore>& t) {
    std::erase_if(t, [](const auto& x) { return x.name == "lm_head.weight"; });
  });
  set("tie_word_embeddings", false);
  EXPECT_THAT(refusal(), HasSubstr("lm_head.weight: is missing"));
}

TEST_F(Damaged, ConfigsOfEverySillyKindAreRefused) {
  for (const char* key :
       {"hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"}) {
    const Json good = config_.at(key);
    for (const Json& bad :
         {Json(-1), Json(0), Json(1e300), Json("x"), Json(), Json(9000000000000000000ull), Json::array()}) {
      set(key, bad);
      EXPECT_THAT(refusal(), HasSubstr("config.json")) << key << " " << bad;
    }
    set(key, good);
  }
  set("model_type", "unheard-of");
  EXPECT_THAT(refusal(), HasSubstr("unheard-of"));
}

TEST(ModelConfig, SaysWhyNoFamilyFits) {
  std::vector<std::string> reasons;
  const Json config = model_config(preset("nanogpt-cpu"), "gpt_neox", &reasons);
  EXPECT_EQ(config.at("model_type"), "transept");
  ASSERT_EQ(reasons.size(), families().size());
  EXPECT_EQ(reasons.front(), "gpt_neox: position is not rope");
  EXPECT_THAT(reasons, ::testing::IsSupersetOf({"llama: norm is not rmsnorm", "bloom: position is not alibi"}));
}

// A family's form is taken only when it says all of the model.
TEST(ModelConfig, DropsNoOption) {
  const auto type = [](const char* base, const char* pointer, const Json& value) {
    Json document = preset_document(base);
    if (*pointer) document[Json::json_pointer(pointer)] = value;
    return model_config(spec_from_json(document, "t")).at("model_type").get<std::string>();
  };
  EXPECT_EQ(type("small-1m", "", {}), "llama");
  EXPECT_EQ(type("small-1m", "/attention/sliding_window", 8), "mistral");
  EXPECT_EQ(type("gpt2", "", {}), "gpt2");
  struct Option {
    const char* pointer;
    Json value;
    const char* type;
  };
  const Option options[] = {{"/attention/qk_norm", "rmsnorm", "qwen3"},
                            {"/attention/qkv_bias", true, "qwen2"},
                            {"/ffn/kind", "reglu", "llama"},
                            {"/position/scaling", {{"kind", "linear"}, {"factor", 2}}, "llama"},
                            {"/position/scaling", {{"kind", "ntk"}, {"factor", 2}}, "transept"},
                            {"/attention/logit_softcap", 30, "transept"},
                            {"/attention/sinks", true, "transept"},
                            {"/attention/scale", 0.3, "transept"},
                            {"/norm/unit_offset", true, "transept"},
                            {"/norm/placement", "sandwich", "transept"},
                            {"/norm/elementwise_affine", false, "transept"},
                            {"/block/form", "parallel", "transept"},
                            {"/position/pairing", "interleaved", "transept"},
                            {"/position/partial_rotary_factor", 0.5, "phi3"},
                            {"/scale_embedding", true, "transept"},
                            {"/embedding_norm", true, "transept"},
                            {"/logit_scale", 0.5, "transept"},
                            {"/final_logit_softcap", 30, "transept"},
                            {"/head_bias", true, "transept"},
                            {"/head_transform", true, "transept"},
                            {"/type_vocab_size", 2, "transept"},
                            {"/pooler", true, "transept"},
                            {"/topology", "encoder", "transept"}};
  for (const auto& [pointer, value, expected] : options)
    EXPECT_EQ(type("small-1m", pointer, value), expected) << pointer;
  EXPECT_EQ(type("gpt2", "/attention/logit_softcap", 30), "transept");
  EXPECT_EQ(type("gpt2", "/topology", "encoder"), "transept");
}

}  // namespace
}  // namespace transept
