#include "ckpt/safetensors.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "support/temp_folder.h"
#include "support/throws.h"

namespace transept {
namespace {
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string file_bytes(uint64_t header_bytes, const std::string& header, const std::string& data) {
  std::string s(8, '\0');
  std::memcpy(s.data(), &header_bytes, 8);
  return s + header + data;
}
std::string file_bytes(const std::string& header, size_t data_bytes = 0) {
  return file_bytes(header.size(), header, std::string(data_bytes, '\1'));
}

std::string refusal(const std::string& bytes) {
  const TempFolder folder;
  return input_error([&] { SafetensorsFile file(folder.put("x.safetensors", bytes)); });
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":)" + entry(dtype, shape, offsets) + "}";
}

// A small good file with two types, a scalar, an empty tensor and metadata.
struct Sample {
  std::vector<float> w{1, -2, 3.5f, 0, 1e-30f, 6};
  std::vector<int64_t> i{-5, 1'000'000'000'000};
  float scalar = 42;
  std::vector<TensorToStore> tensors() const {
    return {{"w", DType::kF32, {2, 3}, w.data()},
            {"nothing", DType::kF32, {0, 5}, nullptr},
            {"scalar", DType::kF32, {}, &scalar},
            {"i", DType::kI64, {2}, i.data()}};
  }
  void write(const fs::path& path) const { write_safetensors(path, tensors()); }
};

TEST(Safetensors, WhatIsWrittenIsRead) {
  const TempFolder folder;
  const Sample sample;
  sample.write(folder / "m.safetensors");
  const SafetensorsFile file(folder / "m.safetensors");
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(file.tensors().size(), 4u);
  const StoredTensor* w = file.find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(w->dtype, DType::kF32);
  EXPECT_EQ(std::memcmp(w->bytes.data(), sample.w.data(), 24), 0);
  EXPECT_EQ(file.find("i")->elements(), 2);
  EXPECT_EQ(std::memcmp(file.find("i")->bytes.data(), sample.i.data(), 16), 0);
  EXPECT_EQ(file.find("scalar")->elements(), 1);
  EXPECT_EQ(file.find("nothing")->elements(), 0);
  EXPECT_EQ(file.find("W"), nullptr);
  std::vector<float> out(6);
  read_f32(*w, out, "m");
  EXPECT_EQ(out, sample.w);
}

TEST(Safetensors, TheFileIsExactlyThis) {
  const TempFolder folder;
  const float v[2] = {1, 2};
  const double d = 3;
  write_safetensors(folder / "m", {{"b", DType::kF32, {2}, v}, {"d", DType::kF64, {1}, &d}});
  std::string header = R"({"__metadata__":{"format":"pt"},"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string data(16, '\0');
  std::memcpy(data.data(), &d, 8);
  std::memcpy(data.data() + 8, v, 8);
  EXPECT_EQ(folder.get("m"), file_bytes(header.size(), header, data));
}

TEST(Safetensors, SameTensorsGiveTheSameBytesInAnyOrder) {
  const TempFolder folder;
  const Sample sample;
  sample.write(folder / "a");
  std::vector<TensorToStore> reversed = sample.tensors();
  std::reverse(reversed.begin(), reversed.end());
  write_safetensors(folder / "b", reversed);
  EXPECT_EQ(folder.get("a"), folder.get("b"));
}

TEST(Safetensors, NoTensorsAtAll) {
  const TempFolder folder;
  write_safetensors(folder / "m", {}, {});
  EXPECT_TRUE(SafetensorsFile(folder / "m").tensors().empty());
}

// B27 of the collected bug reports: shapes, lengths and offsets that lie.
TEST(Safetensors, LiesAreRefusedWithFileAndTensor) {
  const auto tensor_refused = [](const std::string& bytes, const char* why) {
    EXPECT_THAT(refusal(bytes), AllOf(HasSubstr("x.safetensors: tensor \"a\""), HasSubstr(why)));
  };
  tensor_refused(file_bytes(one("F32", "[1000,1000]", "[0,4]"), 4), "takes 4000000 bytes");
  tensor_refused(file_bytes(one("F32", "[4611686018427387904,8]", "[0,4]"), 4), "more elements than can be counted");
  tensor_refused(file_bytes(one("F32", "[18446744073709551615]", "[0,4]"), 4), "more elements than can be counted");
  tensor_refused(file_bytes(one("F32", "[2]", "[8,0]"), 8), "ends before it begins");
  tensor_refused(file_bytes(one("Q99", "[1]", "[0,4]"), 4), "unknown element type");
  tensor_refused(file_bytes(one("F32", "[2]", "[0,8]"), 4), "ends at byte 8 of 4");
  tensor_refused(file_bytes(one("F32", "[1]", "[4,8]"), 8), "begins at byte 4");
  tensor_refused(file_bytes(one("F32", "[-1]", "[0,4]"), 4), "negative");
  tensor_refused(file_bytes(one("F32", "[1.0]", "[0,4]"), 4), "not a whole one");
  tensor_refused(file_bytes(one("F32", "[18446744073709551616]", "[0,4]"), 4), "not a whole one");
  tensor_refused(file_bytes(one("F32", "[\"1\"]", "[0,4]"), 4), "string");
  tensor_refused(file_bytes(one("F32", "[[1]]", "[0,4]"), 4), "list");
  tensor_refused(file_bytes(one("F32", "[null]", "[0,4]"), 4), "null");
  tensor_refused(file_bytes(one("F32", "1", "[0,4]"), 4), "number");
  tensor_refused(file_bytes(one("F32", "[1]", "[0,4,8]"), 4), "two numbers");
  tensor_refused(file_bytes(one("F32", "[1]", "[0]"), 4), "two numbers");
  tensor_refused(file_bytes(one("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), "more than 16");
  tensor_refused(file_bytes(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "lacks one of");
  tensor_refused(file_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4), "unknown field");
  tensor_refused(file_bytes(R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4), "twice");
  tensor_refused(file_bytes(R"({"a":{"dtype":{"x":1},"shape":[1],"data_offsets":[0,4]}})", 4), "nests an object");
  tensor_refused(file_bytes(R"({"a":[1]})", 4), "list");
  tensor_refused(file_bytes(R"({"a":7})", 4), "number");
  tensor_refused(
      file_bytes("{\"a\":" + entry("F32", "[1]", "[0,4]") + ",\"a\":" + entry("F32", "[1]", "[4,8]") + "}", 8),
      "twice");
}

TEST(Safetensors, OverlapsAndGapsBetweenTensorsAreRefused) {
  const auto two = [](const std::string& a, const std::string& b) {
    return file_bytes("{\"a\":" + entry("F32", "[2]", a) + ",\"b\":" + entry("F32", "[2]", b) + "}", 16);
  };
  EXPECT_EQ(refusal(two("[0,8]", "[8,16]")), "(no error)");
  EXPECT_EQ(refusal(two("[8,16]", "[0,8]")), "(no error)");  // names out of the order of the data
  EXPECT_THAT(refusal(two("[0,8]", "[0,8]")), HasSubstr("tensor \"b\" begins at byte 0"));
  EXPECT_THAT(refusal(two("[0,8]", "[4,12]")), HasSubstr("tensor \"b\" begins at byte 4"));
  EXPECT_THAT(refusal(two("[0,8]", "[9,17]")), HasSubstr("tensor \"b\" begins at byte 9"));
  EXPECT_THAT(refusal(file_bytes(one("F32", "[1]", "[0,4]"), 5)), HasSubstr("belong to no tensor"));
}

TEST(Safetensors, MalformedHeadersAreRefused) {
  EXPECT_THAT(refusal(""), HasSubstr("too few"));
  EXPECT_THAT(refusal("ab"), HasSubstr("too few"));
  EXPECT_THAT(refusal(file_bytes(uint64_t{1} << 63, "{}", "")), HasSubstr("only 2 follow"));
  EXPECT_THAT(refusal(file_bytes(200'000'000, std::string(52, ' '), "")), HasSubstr("only 52 follow"));
  EXPECT_THAT(refusal(file_bytes(~uint64_t{0}, "{}", "")), HasSubstr("only 2 follow"));
  EXPECT_THAT(refusal(file_bytes(0, "", "")), HasSubstr("not valid JSON"));
  for (const char* header : {"[]", "[{}]", "1", "null", "true", "\"a\"", "-1", "1.5"}) {
    EXPECT_THAT(refusal(file_bytes(header)), HasSubstr("x.safetensors: ")) << header;
  }
  for (const char* header : {"{", "{}}", "{} x", "{\"a\"", "{\"a\":{\"dtype\":\"F32\",\"sha", "{\"\xff\":1}"}) {
    EXPECT_THAT(refusal(file_bytes(header)), HasSubstr("not valid JSON")) << header;
  }
  EXPECT_THAT(refusal(file_bytes(std::string(1'000'000, '['))), HasSubstr("list"));
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_THAT(refusal(file_bytes(deep)), HasSubstr("unknown field"));
}

TEST(Safetensors, AHeaderBeyondTheCapIsRefusedWithoutBeingRead) {
  const TempFolder folder;
  const fs::path path = folder.put("x.safetensors", file_bytes(100'000'001, "", ""));
  fs::resize_file(path, 8 + 100'000'001);  // sparse
  EXPECT_THAT(input_error([&] { SafetensorsFile file(path); }), HasSubstr("header of more than"));
}

TEST(Safetensors, MetadataHoldsStringsOnly) {
  const TempFolder folder;
  const SafetensorsFile file(folder.put("m", file_bytes(R"({"__metadata__":{"format":"pt","shape":"x"}})")));
  EXPECT_EQ(file.metadata().at("shape"), "x");
  for (const char* header : {R"({"__metadata__":{"a":1}})", R"({"__metadata__":{"a":{}}})",
                             R"({"__metadata__":{"a":[]}})", R"({"__metadata__":"x"})",
                             R"({"__metadata__":{"a":"x","a":"y"}})", R"({"__metadata__":{},"__metadata__":{}})"}) {
    EXPECT_THAT(refusal(file_bytes(header)), HasSubstr("__metadata__")) << header;
  }
}

TEST(Safetensors, GoodFilesOfTheReportLoad) {
  EXPECT_EQ(refusal(file_bytes(one("F32", "[]", "[0,4]"), 4)), "(no error)");
  EXPECT_EQ(refusal(file_bytes(one("F32", "[0,5]", "[0,0]"))), "(no error)");
  EXPECT_EQ(refusal(file_bytes(one("BOOL", "[3]", "[0,3]") + "   ", 3)), "(no error)");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const TempFolder folder;
  Sample().write(folder / "good");
  const std::string good = folder.get("good");
  ASSERT_EQ(refusal(good), "(no error)");
  for (size_t n = 0; n < good.size(); ++n) ASSERT_THAT(refusal(good.substr(0, n)), HasSubstr("x.safetensors: ")) << n;
  ASSERT_THAT(refusal(good + "x"), HasSubstr("belong to no tensor"));
}

TEST(Safetensors, MutatedFilesLoadOrAreRefused) {
  const TempFolder folder;
  Sample().write(folder / "good");
  const std::string good = folder.get("good");
  const size_t header_end = good.rfind('}') + 1;
  const CounterRng rng(1, Stream::kTest);
  uint64_t draw = 0;
  int refused = 0;
  constexpr std::string_view kAlphabet = "0123456789-.,:[]{}\"aFex\\ ";
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (uint64_t edits = 1 + rng.below(draw++, 3); edits > 0; --edits) {
      const size_t at = rng.below(draw++, header_end);
      switch (rng.below(draw++, 4)) {
        case 0:
          bytes[at] = static_cast<char>(rng.below(draw++, 256));
          break;
        case 1:
          bytes[at] = kAlphabet[rng.below(draw++, kAlphabet.size())];
          break;
        case 2:
          bytes.erase(at, 1 + rng.below(draw++, 4));
          break;
        default:
          bytes.insert(at, 1, kAlphabet[rng.below(draw++, kAlphabet.size())]);
          break;
      }
    }
    folder.put("x", bytes);
    ASSERT_TRUE(loads_or_refuses([&] {
      ++refused;
      const SafetensorsFile file(folder / "x");
      --refused;
      uint64_t sum = 0;
      for (const StoredTensor& t : file.tensors()) {
        for (const std::byte b : t.bytes) sum += static_cast<uint64_t>(b);
      }
      ASSERT_LT(sum, uint64_t{1} << 32);
    }));
  }
  EXPECT_GT(refused, 2000);
  EXPECT_LT(refused, 3000);  // a control: the loop also meets files that load
}

TEST(ReadF32, EveryFloatingType) {
  const TempFolder folder;
  const uint16_t halves[] = {0x3C00, 0xC000, 0x7BFF, 0x0001, 0x8000, 0x0400, 0x7C00, 0xFC00, 0x3555, 0x83FF};
  const uint16_t brains[] = {0x3F80, 0xC000, 0x7F80, 0x0001};
  const double doubles[] = {1.5, -1e300, 0.1};
  const int32_t integers[] = {1};
  write_safetensors(folder / "m", {{"h", DType::kF16, {10}, halves},
                                   {"b", DType::kBF16, {4}, brains},
                                   {"d", DType::kF64, {3}, doubles},
                                   {"i", DType::kI32, {1}, integers}});
  const SafetensorsCheckpoint m(folder / "m");
  const auto read = [&](const char* name, size_t n) {
    std::vector<float> out(n);
    m.read_f32(name, out);
    return out;
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(read("h", 10),
            (std::vector<float>{1, -2, 65504, 0x1p-24f, -0.0f, 0x1p-14f, inf, -inf, 0x1.554p-2f, -0x1.ff8p-15f}));
  EXPECT_TRUE(std::signbit(read("h", 10)[4]));
  EXPECT_EQ(read("b", 4), (std::vector<float>{1, -2, inf, std::bit_cast<float>(0x00010000u)}));
  EXPECT_EQ(read("d", 3), (std::vector<float>{1.5f, -inf, 0.1f}));
  EXPECT_THAT(input_error([&] { read("i", 1); }), HasSubstr("tensor \"i\" is of type i32"));
  EXPECT_THAT(input_error([&] { read("d", 4); }), HasSubstr("tensor \"d\" has 3 elements instead of 4"));
  EXPECT_THAT(input_error([&] { read("q", 1); }), HasSubstr("tensor \"q\" is missing"));
}

TEST(ReadF32, EveryHalfEqualsItsDefinition) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const uint16_t bits = static_cast<uint16_t>(h);
    float got = 0;
    read_f32({"h", DType::kF16, {1}, std::as_bytes(std::span(&bits, 1))}, std::span(&got, 1), "m");
    const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    double want = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) want = mantissa == 0 ? INFINITY : NAN;
    if (bits & 0x8000) want = -want;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << h;
    } else {
      ASSERT_EQ(static_cast<double>(got), want) << h;
    }
  }
}

TEST(WriteSafetensors, AFullDiskIsAnEnvironmentError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_THAT(environment_error([] { Sample().write("/dev/full"); }), HasSubstr("/dev/full"));
}

// B28 of the collected bug reports, and its kind.
class Sharded : public ::testing::Test {
 protected:
  void SetUp() override {
    write_safetensors(folder / "model-1.safetensors", {{"a", DType::kF32, {1}, &one_}, {"c", DType::kF32, {1}, &one_}});
    write_safetensors(folder / "model-2.safetensors", {{"b", DType::kF32, {1}, &two_}});
    index(
        R"({"metadata":{"total_size":12,"note":null},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-1.safetensors"}})");
  }
  void index(const std::string& text) { folder.put("model.safetensors.index.json", text); }
  std::string refusal() {
    return input_error([&] { SafetensorsCheckpoint m(folder.path()); });
  }
  TempFolder folder;
  const float one_ = 1, two_ = 2;
};

TEST_F(Sharded, Loads) {
  folder.put("stray.safetensors", "not one at all");  // the index does not name it
  const SafetensorsCheckpoint m(folder.path());
  EXPECT_EQ(m.tensors().size(), 3u);
  float b = 0;
  m.read_f32("b", std::span(&b, 1));
  EXPECT_EQ(b, 2);
  EXPECT_TRUE(SafetensorsCheckpoint::present(folder.path()));
}
TEST_F(Sharded, AMissingShardIsNamed) {
  fs::remove(folder / "model-2.safetensors");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model-2.safetensors: this shard is missing"), HasSubstr("\"b\"")));
}
TEST_F(Sharded, ATensorInNoShardIsNamed) {
  index(
      R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-1.safetensors","d":"model-1.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("tensor \"d\" is not in this shard"));
}
TEST_F(Sharded, ATensorInTheWrongShardIsNamed) {
  index(R"({"weight_map":{"a":"model-2.safetensors","b":"model-2.safetensors","c":"model-1.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("tensor \"a\" is not in this shard"));
  write_safetensors(folder / "model-2.safetensors", {{"a", DType::kF32, {1}, &one_}, {"b", DType::kF32, {1}, &two_}});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model-1.safetensors"),
                               HasSubstr("tensor \"a\" stands in this shard, but not according to the index")));
}
TEST_F(Sharded, TheIndexIsHostileToo) {
  EXPECT_THAT((index(R"({"weight_map":{"a":"../model-1.safetensors"}})"), refusal()),
              HasSubstr("no file of this folder"));
  EXPECT_THAT((index(R"({"weight_map":{"a":"/etc/passwd"}})"), refusal()), HasSubstr("no file of this folder"));
  EXPECT_THAT((index(R"({"weight_map":{"a":".."}})"), refusal()), HasSubstr("no file of this folder"));
  EXPECT_THAT((index(R"({"weight_map":{"a":""}})"), refusal()), HasSubstr("no file of this folder"));
  EXPECT_THAT((index(R"({"weight_map":{"a":1}})"), refusal()), HasSubstr("names to files"));
  EXPECT_THAT((index(R"({"weight_map":"x"})"), refusal()), HasSubstr("names to files"));
  EXPECT_THAT((index(R"({"weight_map":{"a":"model-1.safetensors","a":"model-2.safetensors"}})"), refusal()),
              HasSubstr("twice"));
  EXPECT_THAT((index(R"({"weight_map":{"a":{}}})"), refusal()), HasSubstr("nests"));
  EXPECT_THAT((index(R"({"weight_map":{}})"), refusal()), HasSubstr("empty"));
  EXPECT_THAT((index("{}"), refusal()), HasSubstr("no weight_map"));
  EXPECT_THAT((index("[]"), refusal()), HasSubstr("list"));
  EXPECT_THAT((index("{\"weight_map\":{\"a\":"), refusal()), HasSubstr("not valid JSON"));
}
TEST_F(Sharded, NoWeightsAtAll) {
  fs::remove(folder / "model.safetensors.index.json");
  EXPECT_THAT(refusal(), HasSubstr("holds neither model.safetensors nor"));
  EXPECT_FALSE(SafetensorsCheckpoint::present(folder.path()));
  EXPECT_THAT(input_error([&] { SafetensorsCheckpoint m(folder / "none"); }), HasSubstr("no such file"));
}

}  // namespace
}  // namespace transept
