// The table of element types: the columns agree with each other and with the C++ types and the safetensors format they
// stand for.
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace transept {
namespace {

struct Expected {
  DType type;
  size_t bytes;
  std::string_view name, safetensors;
};

// Names of the safetensors format: its README, "Format".
const Expected kExpected[] = {
    {DType::kF32, sizeof(float), "f32", "F32"},       {DType::kF16, sizeof(uint16_t), "f16", "F16"},
    {DType::kBF16, sizeof(uint16_t), "bf16", "BF16"}, {DType::kF64, sizeof(double), "f64", "F64"},
    {DType::kI64, sizeof(int64_t), "i64", "I64"},     {DType::kI32, sizeof(int32_t), "i32", "I32"},
    {DType::kI16, sizeof(int16_t), "i16", "I16"},     {DType::kI8, sizeof(int8_t), "i8", "I8"},
    {DType::kU8, sizeof(uint8_t), "u8", "U8"},        {DType::kBool, sizeof(bool), "bool", "BOOL"},
};

TEST(DType, EveryTypeHasItsSizeAndNames) {
  for (const Expected& e : kExpected) {
    EXPECT_EQ(dtype_bytes(e.type), static_cast<int64_t>(e.bytes)) << e.name;
    EXPECT_EQ(dtype_name(e.type), e.name);
    EXPECT_EQ(safetensors_name(e.type), e.safetensors);
    EXPECT_EQ(dtype_from_safetensors(e.safetensors), e.type);
  }
}

TEST(DType, OtherNamesAreNone) {
  for (const std::string_view name : {"", "f32", "F8_E4M3", "U64", "bool", "F32 "}) {
    EXPECT_FALSE(dtype_from_safetensors(name)) << name;
  }
}

}  // namespace
}  // namespace transept
