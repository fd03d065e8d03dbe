// The JSON Schema against the reader, and docs/spec.md against the schema.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "spec/arch_spec.h"
#include "spec/presets.h"
#include "spec/schema_check.h"

namespace transept {
namespace {

bool reads(const Json& document) {
  try {
    spec_from_json(document, "");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void expect_same(const Json& document, bool good) {
  static const Json schema = spec_schema();
  EXPECT_EQ(schema_accepts(schema, schema, document), good) << "schema: " << document.dump();
  EXPECT_EQ(reads(document), good) << "reader: " << document.dump();
}

TEST(Schema, AcceptsEveryPreset) {
  for (const std::string& name : preset_names()) {
    expect_same(preset_document(name), true);
    expect_same(spec_to_json(preset(name)), true);
    expect_same({{"extends", name}}, true);
  }
}

TEST(Schema, AgreesWithTheReader) {
  const Json base = preset_document("small-1m");
  const auto edit = [&](const char* pointer, const Json& value) {
    Json d = base;
    d[Json::json_pointer(pointer)] = value;
    return d;
  };
  expect_same(edit("/hidden_size", 128.0), true);
  expect_same(edit("/$schema", "x"), true);
  expect_same(edit("/norm", Json::object()), true);
  expect_same(edit("/norm", {{"placement", "post"}, {"eps", 1e-6}}), true);
  expect_same(edit("/norm", {{"kind", "layernorm"}, {"bias", false}}), true);
  expect_same(edit("/position", {{"kind", "none"}}), true);
  expect_same(edit("/dropout", 0.999), true);
  expect_same(edit("/norm", {{"bias", false}}), false);
  expect_same(edit("/norm", {{"kind", "layernorm"}, {"biass", false}}), false);
  expect_same(edit("/position", {{"kind", "none"}, {"theta", 5}}), false);
  expect_same(edit("/dropout", 1), false);
  expect_same(edit("/dropout", -0.1), false);
  expect_same(edit("/hidden_size", "128"), false);
  expect_same(edit("/hidden_size", 128.5), false);
  expect_same(edit("/hidden_size", 0), false);
  expect_same(edit("/tie_word_embeddings", 1), false);
  expect_same(edit("/ffn", Json::object()), false);
  expect_same(edit("/ffn/kind", "swish"), false);
  expect_same(edit("/attention", Json::object()), false);
  expect_same(edit("/attention/head_dim", int64_t{1} << 31), false);
  expect_same(edit("/layers", Json::array({Json::object()})), false);  // beside num_hidden_layers
  expect_same(edit("/num_hidden_layers", 4097), false);
  expect_same(edit("/surprise", 1), false);
  for (const char* key :
       {"vocab_size", "hidden_size", "max_position_embeddings", "num_hidden_layers", "attention", "ffn"}) {
    Json d = base;
    d.erase(key);
    expect_same(d, false);
  }
  expect_same(Json::array(), false);
}

TEST(Schema, AgreesOnLayersAndExtends) {
  Json base = preset_document("small-1m");
  base.erase("num_hidden_layers");
  const auto layers = [&](Json list) {
    Json d = base;
    d["layers"] = std::move(list);
    return d;
  };
  expect_same(layers({{{"repeat", 2}}, {{"norm", {{"kind", "layernorm"}}}}, {{"norm", {{"eps", 1e-6}}}}}), true);
  Json d = layers({{{"attention", {{"num_attention_heads", 4}}}, {"ffn", {{"intermediate_size", 8}}}}});
  d.erase("attention");
  d.erase("ffn");
  expect_same(d, true);
  expect_same(layers(Json::array()), false);
  expect_same(layers({{{"repeat", 2}, {"layers", {{{"repeat", 3}, {"norm", {{"eps", 1e-6}}}}, Json::object()}}}}),
              true);
  expect_same(layers({{{"layers", {Json::object()}}, {"norm", Json::object()}}}), false);
  expect_same(layers({{{"layers", {{{"layers", {Json::object()}}}}}}}), false);
  expect_same(layers({{{"layers", Json::array()}}}), false);
  expect_same(layers({{{"repeat", 0}}}), false);
  expect_same(layers({{{"position", {{"kind", "none"}}}}}), true);
  expect_same(layers({{{"positions", {{"kind", "none"}}}}}), false);
  expect_same(layers({{{"attention", {{"sliding_windows", 4}}}}}), false);
  expect_same({{"extends", "gpt2"}, {"norm", {{"bias", false}}}}, true);  // the preset's kind has that key
  expect_same({{"extends", "gpt2"}, {"attention", {{"sliding_window", 5}}}, {"layers", {{{"repeat", 2}}}}}, true);
  expect_same({{"extends", "gpt2"}, {"layers", {{{"repeat", 2}}}}, {"num_hidden_layers", 2}}, false);
  expect_same({{"extends", "gpt2"}, {"hidden_size", -1}}, false);
  expect_same({{"extends", "gpt5000"}}, false);
}

TEST(Schema, AgreesOnStacks) {
  Json d = preset_document("small-1m");
  d.erase("num_hidden_layers");
  d["topology"] = "encoder_decoder";
  expect_same(d, false);
  d["encoder"] = {{"num_hidden_layers", 2}};
  expect_same(d, false);
  d["decoder"] = {{"layers", {{{"repeat", 2}}}}, {"norm", {{"placement", "post"}}}};
  expect_same(d, true);
  Json e = d;
  e["topology"] = "encoder";
  expect_same(e, false);
  e = d;
  e["num_hidden_layers"] = 2;
  expect_same(e, false);
  e = d;
  e["encoder"]["layers"] = {{{"repeat", 2}}};
  expect_same(e, false);
  e = d;
  e["encoder"]["depth"] = 2;
  expect_same(e, false);
}

// Keys of docs/spec.md: in the section "## `group`" (or "## Top level", "## `layers`"), rows that begin with "| `key`
// |".
std::map<std::string, std::set<std::string>> keys_of_document(std::istream& text) {
  std::map<std::string, std::set<std::string>> keys;
  std::string section;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ")) {
      section = line.substr(3);
      std::erase(section, '`');
    } else if (line.starts_with("| `")) {
      keys[section].insert(line.substr(3, line.find('`', 3) - 3));
    }
  }
  return keys;
}

std::map<std::string, std::set<std::string>> keys_of_schema() {
  const Json schema = spec_schema();
  std::map<std::string, std::set<std::string>> keys;
  const auto collect = [&](const std::string& section, const Json& object) {
    for (const auto& [key, property] : object["properties"].items()) {
      keys[section].insert(key);
      if (!property.contains("oneOf")) continue;
      for (const Json& form : property["oneOf"]) {  // a group inside the group
        for (const auto& [inner, unused] : form["properties"].items()) keys[section + "." + key].insert(inner);
      }
    }
  };
  collect("Top level", schema);
  for (const auto& [name, definition] : schema["$defs"].items()) {
    if (name.ends_with("_override")) continue;
    const std::string section = name == "layer"     ? "layers"
                                : name == "pattern" ? "layers"
                                : name == "stack"   ? "encoder and decoder"
                                                    : name;
    if (definition.contains("oneOf")) {
      for (const Json& form : definition["oneOf"]) collect(section, form);
    } else {
      collect(section, definition);
    }
  }
  return keys;
}

TEST(Schema, DocumentationNamesEveryKey) {
  std::ifstream file(TRANSEPT_SOURCE_DIR "/docs/spec.md");
  ASSERT_TRUE(file);
  EXPECT_EQ(keys_of_document(file), keys_of_schema());
}

TEST(Schema, DocumentationCheckNoticesAMissingKey) {
  std::istringstream text("## `position`\n| `kind` | x |\n");
  EXPECT_EQ(keys_of_document(text)["position"], (std::set<std::string>{"kind"}));
  EXPECT_NE(keys_of_document(text)["position"], keys_of_schema()["position"]);
}

TEST(Schema, CheckerRefusesUnknownKeywords) {
  const Json schema = {{"pattern", "x"}};
  EXPECT_THROW(schema_accepts(schema, schema, "x"), std::logic_error);
}

}  // namespace
}  // namespace transept
