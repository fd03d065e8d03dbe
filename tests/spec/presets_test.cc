// Presets: listing, naming, extending.
#include "spec/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "spec/extends.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

std::string error_of(const Json& document) {
  try {
    spec_from_json(document, "");
  } catch (const InputError& e) {
    return e.what();
  }
  return {};
}

TEST(Presets, EachReadsAndDescribesItself) {
  const std::vector<std::string> names = preset_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    const ArchSpec spec = preset(name);
    EXPECT_EQ(spec.name, name);
    EXPECT_FALSE(spec.description.empty()) << name;
    EXPECT_TRUE(is_preset(name));
  }
  EXPECT_FALSE(is_preset("llama"));
}

TEST(Presets, UnknownNamesTheClosest) {
  try {
    preset("mistral-7");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("did you mean \"mistral-7b\"?"));
  }
  EXPECT_THROW(preset(""), InputError);
  EXPECT_THROW(preset(std::string(100000, 'x')), InputError);
}

TEST(Extends, LaysGroupOverGroup) {
  const ArchSpec spec = spec_from_json({{"extends", "llama-3-8b"},
                                        {"name", "mine"},
                                        {"num_hidden_layers", 2},
                                        {"attention", {{"num_key_value_heads", 4}}}},
                                       "t");
  EXPECT_EQ(spec.name, "mine");
  EXPECT_EQ(spec.layers.size(), 2u);
  EXPECT_EQ(spec.vocab_size, 128256);
  const auto& a = std::get<GqaSpec>(spec.layers[0].attention);
  EXPECT_EQ(a.num_attention_heads, 32);
  EXPECT_EQ(a.num_key_value_heads, 4);
  EXPECT_EQ(std::get<RopePosition>(spec.position).theta, 500000);
}

TEST(Extends, NameAndDescriptionAreOnesOwn) {
  const ArchSpec spec = spec_from_json({{"extends", "gpt2"}}, "t");
  EXPECT_EQ(spec.name, "unnamed");
  EXPECT_EQ(spec.description, "");
  EXPECT_EQ(spec.layers.size(), 12u);
}

TEST(Extends, ListOfLayersReplacesTheCount) {
  EXPECT_EQ(spec_from_json({{"extends", "gpt2"}, {"layers", {{{"repeat", 3}}}}}, "t").layers.size(), 3u);
}

TEST(Extends, RefusesWhatIsNoPreset) {
  EXPECT_THAT(error_of({{"extends", "gpt3"}}),
              HasSubstr("extends: no preset is named \"gpt3\"; did you mean \"gpt2\"?"));
  EXPECT_THAT(error_of({{"extends", 5}}), HasSubstr("extends: got 5; allowed: the name of a preset"));
}

TEST(Extends, ChainsAndCycles) {
  const std::map<std::string, Json, std::less<>> presets{
      {"a", {{"extends", "b"}, {"hidden_size", 8}, {"norm", {{"eps", 1e-6}}}}},
      {"b", {{"vocab_size", 16}, {"hidden_size", 4}, {"norm", {{"kind", "layernorm"}, {"eps", 1e-5}}}}},
      {"self", {{"extends", "self"}}},
      {"x", {{"extends", "y"}}},
      {"y", {{"extends", "x"}}}};
  const PresetLookup find = [&](std::string_view name) -> std::optional<Json> {
    const auto it = presets.find(name);
    if (it == presets.end()) return std::nullopt;
    return it->second;
  };
  Problems problems;
  const Json merged = expand_extends({{"extends", "a"}, {"vocab_size", 32}}, find, {"a", "b"}, "extends", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(merged, (Json{{"vocab_size", 32}, {"hidden_size", 8}, {"norm", {{"kind", "layernorm"}, {"eps", 1e-6}}}}));
  for (const char* name : {"self", "x"}) {
    problems.clear();
    expand_extends({{"extends", name}}, find, {"a"}, "extends", problems);
    ASSERT_EQ(problems.size(), 1u) << name;
    EXPECT_THAT(problems[0].what, HasSubstr("extends itself"));
  }
}

}  // namespace
}  // namespace transept
