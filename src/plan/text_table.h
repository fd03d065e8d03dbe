// Tables of a plan for a person at a terminal, and the amounts that stand in them alone.
#pragma once

#include <string>

namespace transept {

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
