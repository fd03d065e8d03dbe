// metrics.jsonl: whole lines, null for what is no number, cutting back on resume, and files that were damaged.
#include "train/metrics.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "base/problem.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

class MetricsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("transept_metrics_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = folder_ / "metrics.jsonl";
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string bytes() const { return read_file(path_, 1 << 20); }
  void put(std::string_view text) const { write_file_atomic(path_, text); }

  fs::path folder_, path_;
};

TEST_F(MetricsTest, LineIsJsonInOrderWithNullForNan) {
  const double inf = std::numeric_limits<double>::infinity();
  MetricsWriter writer(path_);
  writer.append(
      Metrics{{"step", 10}, {"loss", 2.5}, {"lr", 3e-4}, {"grad_norm", NAN}, {"val_loss", -inf}, {"big", 1e300}});
  EXPECT_EQ(bytes(), "{\"step\":10,\"loss\":2.5,\"lr\":0.0003,\"grad_norm\":null,\"val_loss\":null,\"big\":1e+300}\n");
}

TEST_F(MetricsTest, DoublesComeBackBitForBit) {
  const double values[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -123456789.123456789, 9007199254740993.0};
  MetricsWriter writer(path_);
  for (const double v : values) writer.append(Metrics{{"step", 1}, {"v", v}});
  const std::vector<Json> records = read_metrics(path_);
  ASSERT_EQ(records.size(), std::size(values));
  for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(metric(records[i], "v"), values[i]);
}

TEST_F(MetricsTest, StartsAnewWithoutResume) {
  put("{\"step\":1}\n");
  MetricsWriter writer(path_);
  EXPECT_EQ(bytes(), "");
}

TEST_F(MetricsTest, ResumeKeepsUpToTheStepAndAppends) {
  put("{\"step\":1}\n{\"step\":2,\"loss\":1}\n{\"step\":3}\n");
  MetricsWriter writer(path_, 2);
  writer.append(Metrics{{"step", 3}, {"loss", 0.5}});
  EXPECT_EQ(bytes(), "{\"step\":1}\n{\"step\":2,\"loss\":1}\n{\"step\":3,\"loss\":0.5}\n");
}

TEST_F(MetricsTest, ResumeDropsATornLine) {
  for (const std::string torn : {"{\"step\":2,\"lo", "{\"step\":2}", "{\"step\":2,\"lo\n"}) {
    put("{\"step\":1}\n" + torn);
    MetricsWriter writer(path_, 5);
    EXPECT_EQ(bytes(), "{\"step\":1}\n") << torn;
  }
}

TEST_F(MetricsTest, ResumeWithoutAFileStartsOne) {
  MetricsWriter writer(path_, 5);
  writer.append(Metrics{{"step", 6}});
  EXPECT_EQ(bytes(), "{\"step\":6}\n");
}

TEST_F(MetricsTest, ReadsWholeLinesOnly) {
  put("{\"step\":1,\"loss\":null}\n{\"step\":2");
  const std::vector<Json> records = read_metrics(path_);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(metric(records[0], "step"), 1);
  EXPECT_TRUE(std::isnan(metric(records[0], "loss")));
  EXPECT_TRUE(std::isnan(metric(records[0], "absent")));
  EXPECT_TRUE(std::isnan(metric(Json::array(), "absent")));
}

TEST_F(MetricsTest, DamageInTheMiddleIsNamed) {
  const std::string long_line = "{\"a\":\"" + std::string((1 << 20) + 1, 'x') + "\"}";
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  for (const std::string& bad :
       {std::string("garbage"), std::string("[1]"), std::string("{\"a\":1e999}"), std::string("{\"a\":1,\"a\":2}"),
        std::string("\0\0\0", 3), std::string("\xff\xfe"), std::string(), long_line, deep}) {
    put("{\"step\":1}\n" + bad + "\n{\"step\":2}\n");
    try {
      read_metrics(path_);
      FAIL() << bad.substr(0, 40);
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find("line 2"), std::string::npos) << e.what();
    }
    EXPECT_THROW(MetricsWriter(path_, 2), InputError);
  }
}

TEST_F(MetricsTest, MissingFileAndUnwritableFolder) {
  EXPECT_THROW(read_metrics(folder_ / "absent.jsonl"), InputError);
  EXPECT_THROW(MetricsWriter(folder_ / "absent" / "metrics.jsonl"), EnvironmentError);
}

TEST_F(MetricsTest, FullDiskLeavesWholeLines) {
  const auto before_signal = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  MetricsWriter writer(path_);
  writer.append(Metrics{{"step", 1}});
  rlimit tight = before;
  tight.rlim_cur = 20;  // the second line fits in part only
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_THROW(writer.append(Metrics{{"step", 2}, {"loss", 0.123456789}}), EnvironmentError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, before_signal);
  EXPECT_EQ(bytes(), "{\"step\":1}\n");
}

}  // namespace
}  // namespace transept
