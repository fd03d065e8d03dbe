// The table of machines, and files that add to it.
#include "plan/machine_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

MachineType one(const Json& document) { return read_machine_types(document, "m.json").front(); }

Json plain() {
  return {{"name", "m"},
          {"kind", "cpu"},
          {"flops_per_second", {{"f32", 1e12}}},
          {"memory_bytes", int64_t{1} << 34},
          {"memory_bytes_per_second", 1e11}};
}

std::string refusal(const Json& document) {
  try {
    read_machine_types(document, "m.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(MachineTypes, DataSheets) {
  const MachineType a100 = find_machine_type("a100-80gb"), h100 = find_machine_type("h100-sxm");
  EXPECT_EQ(a100.flops_per_second.at("bf16"), 312e12);  // extended from the one of 40 GB
  EXPECT_EQ(a100.memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(a100.memory_bytes_per_second, 2039e9);
  EXPECT_EQ(a100.interconnect_bytes_per_second, 600e9);
  EXPECT_EQ(h100.flops_per_second.at("bf16"), 989.4e12);  // half of the sparse 1,979
  EXPECT_EQ(find_machine_type("tpu-v4").flops_per_second.at("bf16"), 275e12);
  EXPECT_GE(machine_types().size(), 20u);
}

TEST(MachineTypes, TableReadsBack) {
  for (const MachineType& m : machine_types()) {
    EXPECT_EQ(to_json(one(to_json(m))), to_json(m)) << m.name;
    EXPECT_GT(m.training_peak().flops_per_second, 0) << m.name;
    EXPECT_FALSE(m.description.empty()) << m.name;
    for (const char* dtype : {"f32", "f16", "bf16"}) EXPECT_GT(m.peak(dtype).flops_per_second, 0) << m.name;
  }
}

// A V100 has no bfloat16 and a TPU publishes no float32.
TEST(MachineTypes, NearestFormat) {
  const MachineType v100 = find_machine_type("v100-32gb"), tpu = find_machine_type("tpu-v4");
  EXPECT_EQ(v100.peak("bf16").dtype, "f32");
  EXPECT_EQ(v100.peak("f16").dtype, "f16");
  EXPECT_EQ(v100.training_peak().dtype, "f16");
  EXPECT_EQ(tpu.peak("f32").dtype, "bf16");
  EXPECT_EQ(one(plain()).training_peak().dtype, "f32");
}

TEST(MachineTypes, MeasuredRates) {
  Json document = plain();
  document["read_rates"] = {{{"working_set_bytes", 1 << 20}, {"bytes_per_second", 100e9}},
                            {{"working_set_bytes", 4 << 20}, {"bytes_per_second", 25e9}}};
  document["row_flops_per_second"] = {{"f32", 2e9}, {"bf16", 1e9}};
  const MachineType m = one(document);
  EXPECT_EQ(m.reachable_flops_per_second("bf16", 3), 3e9);
  EXPECT_EQ(m.reachable_flops_per_second("f32", 1e6), 1e12);
  EXPECT_EQ(m.reachable_flops_per_second("f16", 1), 1e12);
  EXPECT_NEAR(m.read_bytes_per_second(2 << 20), 50e9, tolerance::kDouble * 50e9);
  EXPECT_EQ(m.read_bytes_per_second(1), 100e9);
  EXPECT_EQ(m.read_bytes_per_second(1e12), 25e9);
  EXPECT_EQ(to_json(m), to_json(one(to_json(m))));
  EXPECT_EQ(one(plain()).read_bytes_per_second(1), 1e11);
}

TEST(MachineTypes, Extends) {
  const Json list = {{{"name", "mine"}, {"extends", "h100-sxm"}, {"usd_per_hour", 1.25}},
                     {{"name", "derated"}, {"extends", "mine"}, {"flops_per_second", {{"bf16", 800e12}}}}};
  const std::vector<MachineType> machines = read_machine_types(list, "m.json");
  EXPECT_EQ(machines[0].usd_per_hour, 1.25);
  EXPECT_EQ(machines[0].memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(machines[0].description, "");
  EXPECT_EQ(machines[1].flops_per_second.at("bf16"), 800e12);
  EXPECT_EQ(machines[1].flops_per_second.at("f8"), 1978.9e12);
  EXPECT_EQ(machines[1].usd_per_hour, 1.25);
  EXPECT_THAT(refusal({{"name", "m"}, {"extends", "h100sxm"}}),
              HasSubstr("names no machine; did you mean \"h100-sxm\"?"));
  EXPECT_THAT(refusal({{"name", "m"}, {"extends", 3}}), HasSubstr("m.json: extends: got 3"));
}

TEST(MachineTypes, AllProblemsAtOnce) {
  const std::string text = refusal({{"name", "a b"},
                                    {"kind", "toaster"},
                                    {"flops_per_second", {{"bf61", 1e12}, {"f16", -1}}},
                                    {"memory_bytes", 1.5e9 + 0.5},
                                    {"memory_bandwidth", 1e9},
                                    {"watts", "many"}});
  for (const char* part :
       {"m.json: memory_bandwidth: is no key of a machine", "m.json: name: got \"a b\"",
        "m.json: kind: got \"toaster\"", "allowed: gpu, accelerator, cpu", "m.json: flops_per_second.bf61",
        "did you mean \"bf16\"?", "m.json: flops_per_second.f16: got -1", "m.json: memory_bytes: got 1500000000.5",
        "m.json: memory_bytes_per_second: is missing", "m.json: watts: got the string \"many\""})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(MachineTypes, HostileNumbers) {
  const double values[] = {
      std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0, -1, 1e308, 5e-324};
  for (const double value : values) {
    for (const char* key : {"memory_bytes", "memory_bytes_per_second"}) {
      Json document = plain();
      document[key] = value;
      EXPECT_THAT(refusal(document), HasSubstr(std::string("m.json: ") + key + ": got ")) << value;
    }
    Json document = plain();
    document["flops_per_second"]["f32"] = value;
    EXPECT_THAT(refusal(document), HasSubstr("m.json: flops_per_second.f32: got ")) << value;
    document = plain();
    document["row_flops_per_second"] = {{"f32", value}};
    EXPECT_THAT(refusal(document), HasSubstr("m.json: row_flops_per_second.f32: got ")) << value;
    document = plain();
    document["read_rates"] = {{{"working_set_bytes", value}, {"bytes_per_second", 1e9}}};
    EXPECT_THAT(refusal(document), HasSubstr("m.json: read_rates[0].working_set_bytes: got ")) << value;
  }
  for (const Json& value : {Json(), Json(true), Json("1e9"), Json::array({1}), Json(-1e9), Json(1e300)}) {
    for (const char* key : {"usd_per_hour", "watts", "interconnect_bytes_per_second", "layer_seconds"}) {
      Json document = plain();
      document[key] = value;
      EXPECT_THAT(refusal(document), HasSubstr(std::string("m.json: ") + key + ": got ")) << value;
    }
  }
}

TEST(MachineTypes, Documents) {
  EXPECT_THAT(refusal("h100"), HasSubstr("m.json: got the string \"h100\""));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("0 machines"));
  EXPECT_THAT(refusal(Json::array({3})), HasSubstr("m.json: [0]: got 3"));
  EXPECT_THAT(refusal(Json::array({plain(), plain()})), HasSubstr("m.json: [1].name: a second machine"));
  Json document = plain();
  document["flops_per_second"] = {{"i8", 1e12}};
  EXPECT_THAT(refusal(document), HasSubstr("holds none of f32, tf32, bf16, f16"));
  document["flops_per_second"] = 1e12;
  EXPECT_THAT(refusal(document), HasSubstr("m.json: flops_per_second: got 1000000000000.0"));
  document = plain();
  document["read_rates"] = {{{"working_set_bytes", 4096}, {"bytes_per_second", 2e9}},
                            {{"working_set_bytes", 4096}, {"bytes_per_second", 1e9}}};
  EXPECT_THAT(refusal(document), HasSubstr("read_rates[1].working_set_bytes: is not above the one before"));
  EXPECT_THROW(find_machine_type("h1000"), InputError);
  EXPECT_THROW(find_machine_type("no-such-file.json"), InputError);
}

}  // namespace
}  // namespace transept
