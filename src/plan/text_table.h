// Tables of a plan for a person at a terminal, and the numbers in them.
#pragma once

#include <cstdint>
#include <string>

namespace transept {

std::string grouped(int64_t n);  // 1234567 -> "1,234,567"
std::string bytes(double x);     // "1.50 GiB"
std::string bytes(int64_t x);
std::string flops(double x);    // "1.50 GFLOP"
std::string seconds(double x);  // "1.50 ms", "2.00 h"
std::string usd(double x);      // "$1.50", three digits below a dollar

class TextTable {
 public:
  void heading(const std::string& text);
  void row(const std::string& label, const std::string& value, const std::string& note = {});
  std::string take();

 private:
  std::string text_;
};

}  // namespace transept
