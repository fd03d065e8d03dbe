// Folders as transformers saves them, of every family with odd settings (tests/goldens/folders/cases.json, written by
// tools/goldens/folders.py): each is read, computes what transformers computes, in one pass and through the cache, and
// is written again with the same tensors and a config that means the same.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "ckpt/safetensors.h"
#include "convert/family.h"
#include "convert/model_folder.h"
#include "equivalence/hashed_model.h"
#include "infer/decoder.h"
#include "support/compare.h"
#include "support/goldens.h"
#include "support/temp_folder.h"
#include "support/tolerances.h"

namespace transept {
namespace {

const Json& cases() {
  static const Json all = parse_json(read_file(goldens() / "folders/cases.json", 1 << 22), "cases.json");
  return all;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : cases().items()) names.push_back(name);
  return names;
}

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

// What a model computes, and what it is named.
Json meaning(const ArchSpec& spec) {
  Json document = spec_to_json(spec);
  for (const char* key : {"name", "description", "dropout"}) document.erase(key);
  return document;
}

class Folders : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    case_ = cases().at(GetParam());
    write(case_["config"]);
  }

  // The folder with this config and the hashed tensors.
  void write(const Json& config) {
    const std::string type = config.at("model_type");
    std::vector<std::vector<float>> values;
    std::vector<TensorToStore> tensors;
    for (const auto& [name, shape] : case_["tensors"].items()) {
      const auto extents = shape.get<std::vector<int64_t>>();
      std::vector<float>& to = values.emplace_back(static_cast<size_t>(elements(extents)));
      // BART's bias on the logits is saved though it is none.
      const HashedTensor hashed(name, hash_offset(name, extents, type));
      const bool zeros = name == "final_logits_bias" && type == "bart";
      for (size_t i = 0; i < to.size(); ++i) to[i] = zeros ? 0 : hashed[static_cast<uint32_t>(i)];
      tensors.push_back({name, DType::kF32, extents, nullptr});
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
    write_safetensors(folder_.path() / "model.safetensors", std::move(tensors));
    write_file_atomic(folder_.path() / "config.json", config.dump());
  }

  // The row that the case looks at: of hidden states for an encoder without a head, else of logits.
  std::vector<float> result(const Model& model) {
    auto tokens = case_["tokens"].get<std::vector<int32_t>>(), source = std::vector<int32_t>();
    if (const auto decoder = case_["decoder_tokens"].get<std::vector<int32_t>>(); !decoder.empty())
      source = std::exchange(tokens, decoder);
    const ArchSpec& spec = model.spec();
    const bool encoder = spec.topology == Topology::kEncoder, hidden = encoder && !spec.head_transform;
    const size_t width = static_cast<size_t>(hidden ? spec.hidden_size : spec.vocab_size);
    std::vector<float> all(tokens.size() * width);
    if (hidden) {
      forward_hidden(model, pool_, tokens, all);
    } else {
      forward_logits(model, pool_, tokens, all, source);
    }
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(encoder ? 0 : all.size() - width);
    std::vector<float> last{row, row + static_cast<std::ptrdiff_t>(width)};
    if (encoder) return last;
    Decoder decoder(model, pool_, static_cast<int64_t>(tokens.size()), static_cast<int64_t>(source.size()));
    if (!source.empty()) decoder.read_source(source);
    std::span<const float> logits;
    for (const int32_t token : tokens) logits = decoder.feed({&token, 1});
    EXPECT_TRUE(close(logits, std::span<const float>(last), tolerance::kKernel)) << "token by token";
    return last;
  }

  ThreadPool pool_{1};
  TempFolder folder_;
  Json case_;
};

TEST_P(Folders, ComputeWhatTransformersComputes) {
  const std::vector<float> got = result(*load_model(folder_.path()));
  EXPECT_TRUE(close(got, case_["result"].get<std::vector<double>>(), tolerance::kLogits));
  for (const auto& [mistake, values] : case_["wrong"].items())
    EXPECT_FALSE(close(got, values.get<std::vector<double>>(), tolerance::kLogits)) << mistake;
}

TEST_P(Folders, ComeBackAsTheyWere) {
  const auto model = load_model(folder_.path());
  const TempFolder again;
  save_model(*model, again.path(), {.family = case_["config"].at("model_type")});
  const Json config = read_json(again.path() / "config.json");
  EXPECT_EQ(config.at("model_type"), case_["config"].at("model_type"));
  EXPECT_EQ(meaning(read_model_spec(again.path())), meaning(model->spec()));
  const SafetensorsCheckpoint before(folder_.path()), after(again.path());
  for (const StoredTensor* tensor : after.tensors()) {
    const StoredTensor* own = before.find(tensor->name);
    ASSERT_NE(own, nullptr) << tensor->name;
    EXPECT_EQ(tensor->shape, own->shape) << tensor->name;
    EXPECT_EQ(std::memcmp(tensor->bytes.data(), own->bytes.data(), own->bytes.size()), 0) << tensor->name;
  }
  for (const StoredTensor* tensor : before.tensors()) {
    if (tensor->name != "final_logits_bias") {
      EXPECT_NE(after.find(tensor->name), nullptr) << tensor->name;
    }
  }
}

// Matrices that stay in their 16-bit file compute what they compute as floats.
TEST_P(Folders, RunFromTheFile) {
  const auto model = load_model(folder_.path());
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const TempFolder half;
    save_model(*model, half.path(), {.family = case_["config"].at("model_type"), .dtype = dtype});
    const auto widened = load_model(half.path()), mapped = load_model(half.path(), LoadFor::kRun);
    int64_t in_floats = 0;
    for (const Parameters::Entry& e : mapped->parameters().entries()) in_floats += e.stored ? 0 : e.size;
    // GPT-2's matrices and gpt-oss' experts are transposed, and DeepSeek's keys and values are made from their latent
    // in floats.
    const std::string type = case_["config"].at("model_type");
    if (type != "gpt2" && type != "gpt_oss" && !type.starts_with("deepseek_v")) {
      EXPECT_LT(2 * in_floats, mapped->parameters().count());
    }
    EXPECT_TRUE(close(result(*mapped), result(*widened), tolerance::kLogits)) << dtype_name(dtype);
  }
}

// A key that nobody understands is refused in every family.
TEST_P(Folders, RefuseWhatTheyDoNotUnderstand) {
  Json config = case_["config"];
  config["mystery_scale"] = 2.5;
  write(config);
  try {
    load_model(folder_.path());
    FAIL() << "mystery_scale was ignored";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("mystery_scale"), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Folders, ::testing::ValuesIn(case_names()), [](const auto& c) { return c.param; });

// The block of rotary positions as transformers 5 and 4 write it, and as was written before.
TEST(RopeSpellings, MeanTheSame) {
  const auto spec = [](const Json& config) {
    const TempFolder folder;
    write_file_atomic(folder.path() / "config.json", config.dump());
    return meaning(read_model_spec(folder.path()));
  };
  for (const char* name : {"llama3", "llama_theta", "yarn", "llama_linear", "phi3_longrope_beyond"}) {
    const Json now = cases().at(name)["config"];
    Json block = now.at("rope_parameters");
    Json four = now;
    four.erase("rope_parameters");
    four["rope_theta"] = block.at("rope_theta");
    block.erase("rope_theta");
    four["rope_scaling"] = block.at("rope_type") == "default" ? Json() : block;
    EXPECT_EQ(spec(four), spec(now)) << name;
    if (four["rope_scaling"].is_null()) continue;
    Json older = four;
    older["rope_scaling"]["type"] = block.at("rope_type");
    older["rope_scaling"].erase("rope_type");
    EXPECT_EQ(spec(older), spec(now)) << name;
    // A block that nobody reads would leave the plain angles.
    Json none = four;
    none["rope_scaling"] = nullptr;
    EXPECT_NE(spec(none), spec(now)) << name;
  }
  // A table for each type of layer, and the two bases of transformers 4.
  const Json now = cases().at("gemma3_two_tables")["config"];
  Json four = now;
  four.erase("rope_parameters");
  const Json &full = now.at("rope_parameters").at("full_attention"),
             &sliding = now.at("rope_parameters").at("sliding_attention");
  four["rope_theta"] = full.at("rope_theta");
  four["rope_local_base_freq"] = sliding.at("rope_theta");
  four["rope_scaling"] = {{"rope_type", full.at("rope_type")}, {"factor", full.at("factor")}};
  EXPECT_EQ(spec(four), spec(now));
}

// Positions count from the row behind the padding token's: as many tokens as the table has rows behind it, and one more
// has none.
TEST(Roberta, LongestInput) {
  ThreadPool pool(1);
  const ArchSpec spec = [] {
    Problems problems;
    const ArchSpec read =
        read_family_config(*find_family("roberta"), cases().at("roberta")["config"], "config.json", problems);
    throw_if_any(std::move(problems));
    return spec_from_json(spec_to_json(read), "roberta");
  }();
  EXPECT_EQ(spec.max_position_embeddings, 20 - 1 - 1);
  const auto model = hashed_model(spec, "roberta");
  const std::vector<int32_t> longest(18, 5);
  EXPECT_NO_THROW(model->check_input(longest, 17, "--tokens"));
  EXPECT_THROW(model->check_input(longest, 18, "--tokens"), InputError);
}

TEST(Families, EachHasACase) {
  std::set<std::string> seen;
  for (const auto& [name, value] : cases().items()) seen.insert(value["config"].at("model_type").get<std::string>());
  for (const Family* family : families())
    EXPECT_TRUE(seen.contains(std::string(family->model_type))) << family->model_type;
}

}  // namespace
}  // namespace transept
