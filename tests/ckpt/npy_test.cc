#include "ckpt/npy.h"

#include <gmock/gmock.h>

#include <cstring>

#include "base/rng.h"
#include "support/temp_folder.h"
#include "support/throws.h"

namespace transept {
namespace {
using ::testing::HasSubstr;

std::string npy(const std::string& header, const std::string& data) {
  const uint16_t n = static_cast<uint16_t>(header.size());
  std::string s("\x93NUMPY\x01\x00", 8);
  s.append(reinterpret_cast<const char*>(&n), 2);
  return s + header + data;
}
std::string refusal(const std::string& bytes) {
  const TempFolder folder;
  return input_error([&] { read_npy(folder.put("x.npy", bytes)); });
}

TEST(Npy, WhatIsWrittenIsRead) {
  const TempFolder folder;
  const std::vector<float> v{1, 2, 3, 4, 5, -6.5f};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{6}, {2, 3}, {1, 1, 6, 1}, {3, 2}}) {
    write_npy(folder / "f.npy", shape, std::span<const float>(v));
    const NpyArray a = read_npy(folder / "f.npy");
    EXPECT_EQ(a.shape, shape);
    EXPECT_EQ(a.dtype, DType::kF32);
    EXPECT_EQ(a.as_f32(), v);
    EXPECT_EQ(a.as_f64().back(), -6.5);
    EXPECT_EQ(a.as_i64().back(), -6);
    EXPECT_EQ((folder.get("f.npy").size() - 24) % 64, 0u);  // values are aligned to 64 bytes
  }
  const std::vector<int64_t> i{INT64_MIN, INT64_MAX};
  write_npy(folder / "i.npy", std::vector<int64_t>{2}, std::span<const int64_t>(i));
  EXPECT_EQ(read_npy(folder / "i.npy").as_i64(), i);
  write_npy(folder / "s.npy", {}, std::span<const float>(v).first(1));
  EXPECT_TRUE(read_npy(folder / "s.npy").shape.empty());
  write_npy(folder / "e.npy", std::vector<int64_t>{0, 4}, std::span<const float>());
  EXPECT_EQ(read_npy(folder / "e.npy").elements(), 0);
}

// What numpy.save writes for numpy.array([[1, 2, 3]], numpy.int32), byte for byte.
TEST(Npy, AFileOfNumpy) {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3), }";
  header.resize(117, ' ');
  header += '\n';
  const int32_t values[] = {1, 2, 3};
  const std::string data(reinterpret_cast<const char*>(values), 12);
  const TempFolder folder;
  const NpyArray a = read_npy(folder.put("x.npy", npy(header, data)));
  EXPECT_EQ(a.shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(a.as_i64(), (std::vector<int64_t>{1, 2, 3}));

  const int64_t wide[] = {1, 2, 3};
  write_npy(folder / "y.npy", std::vector<int64_t>{1, 3}, std::span<const int64_t>(wide));
  std::string expected = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 3), }";
  expected.resize(117, ' ');
  expected += '\n';
  EXPECT_EQ(folder.get("y.npy"), npy(expected, std::string(reinterpret_cast<const char*>(wide), 24)));
}

TEST(Npy, MalformedFilesAreRefused) {
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}",
               std::string(8, '\0'));
  };
  ASSERT_EQ(refusal(with("'<f4'", "False", "(2,)")), "(no error)");
  EXPECT_THAT(refusal(with("'<f4'", "False", "(3,)")), HasSubstr("8 bytes of values instead of 12"));
  EXPECT_THAT(refusal(with("'>f4'", "False", "(2,)")), HasSubstr("element type >f4"));
  EXPECT_THAT(refusal(with("'|O'", "False", "(2,)")), HasSubstr("element type |O"));
  EXPECT_THAT(refusal(with("'<f4'", "True", "(2,)")), HasSubstr("C order"));
  EXPECT_THAT(refusal(with("'<f4'", "False", "(-2,)")), HasSubstr("whole numbers"));
  EXPECT_THAT(refusal(with("'<f4'", "False", "(99999999999999999999,)")), HasSubstr("cannot be counted"));
  EXPECT_THAT(refusal(with("'<f4'", "False", "(4611686018427387904, 8)")), HasSubstr("cannot be counted"));
  EXPECT_THAT(refusal(with("'<f4'", "False", "(2,")), HasSubstr("x.npy"));
  EXPECT_THAT(refusal(with("'<f4'", "False", "2")), HasSubstr("malformed"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False}", "")), HasSubstr("malformed"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "1234")),
              HasSubstr("repeated"));
  EXPECT_THAT(refusal(""), HasSubstr("no .npy file"));
  EXPECT_THAT(refusal(std::string("\x93NUMPY\x02\x00\x01\x00", 10)), HasSubstr("no .npy file"));
  const float big = 1e30f;
  NpyArray a{DType::kF32, {1}, std::string(reinterpret_cast<const char*>(&big), 4)};
  EXPECT_THAT(input_error([&] { a.as_i64(); }), HasSubstr("no 64-bit integer"));
}

TEST(Npy, TruncationsAndMutations) {
  const TempFolder folder;
  const std::vector<float> v(12, 1.0f);
  write_npy(folder / "good", std::vector<int64_t>{3, 4}, std::span<const float>(v));
  const std::string good = folder.get("good");
  for (size_t n = 0; n < good.size(); ++n) ASSERT_THAT(refusal(good.substr(0, n)), HasSubstr("x.npy")) << n;
  const CounterRng rng(2, Stream::kTest);
  int refused = 0;
  for (uint64_t round = 0; round < 3000; ++round) {
    std::string bytes = good;
    bytes[rng.below(3 * round, 128)] = static_cast<char>(rng.below(3 * round + 1, 256));
    folder.put("x", bytes);
    ASSERT_TRUE(loads_or_refuses([&] {
      ++refused;
      ASSERT_EQ(read_npy(folder / "x").bytes.size(), 48u);
      --refused;
    }));
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 3000);
}

}  // namespace
}  // namespace transept
