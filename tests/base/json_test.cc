#include "base/json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/temp_folder.h"
#include "support/throws.h"

namespace transept {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  return input_error([&] { parse_json(text, "the spec"); });
}

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"z": 1, "a": [2, {"m": null}]})", "x").dump(), R"({"z":1,"a":[2,{"m":null}]})");
}

TEST(Json, DuplicateKeysAreRefusedAtAnyDepth) {
  EXPECT_THAT(refusal(R"({"a": 1, "a": 2})"), AllOf(HasSubstr("the spec"), HasSubstr("\"a\" stands twice")));
  EXPECT_THAT(refusal(R"({"a": [{"b": 1, "c": {}, "b": 2}]})"), HasSubstr("\"b\" stands twice"));
  EXPECT_EQ(refusal(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})"), "(no error)");
}

TEST(Json, DepthIsBounded) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(64)), "(no error)");
  EXPECT_THAT(refusal(nested(66)), HasSubstr("nests deeper"));
  EXPECT_THAT(refusal(std::string(1'000'000, '[')), HasSubstr("nests deeper"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal(objects), HasSubstr("nests deeper"));
}

TEST(Json, MalformedTextIsAnInputError) {
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "{} {}", "nul", "\"\xff\"", "\"\\ud800\"", "1e999", "-1e999",
                           "{\"a\": 1e400}", "[01]", "\x01"}) {
    EXPECT_THAT(refusal(text), HasSubstr("the spec")) << text;
  }
}

TEST(Json, FilesAreBounded) {
  const TempFolder folder;
  EXPECT_EQ(read_json(folder.put("a.json", "[1]")).dump(), "[1]");
  EXPECT_THAT(input_error([&] { read_json(folder.put("b.json", std::string(100, ' ') + "1"), 50); }),
              HasSubstr("b.json"));
  EXPECT_THAT(input_error([&] { read_json(folder / "none.json"); }), HasSubstr("no such file"));
}

}  // namespace
}  // namespace transept
