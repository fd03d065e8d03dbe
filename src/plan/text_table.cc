#include "plan/text_table.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <utility>

namespace transept {
namespace {

std::string scaled(double x, double step, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  while (x >= step && unit + 1 != units.end()) {
    x /= step;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", x, unit == units.begin() ? 0 : 2, *unit);
}

}  // namespace

std::string grouped(int64_t n) {
  const std::string digits = std::to_string(n);
  std::string s;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) s += ',';
    s += digits[i];
  }
  return s;
}

std::string bytes(double x) { return scaled(x, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}); }
std::string bytes(int64_t x) { return bytes(static_cast<double>(x)); }
std::string flops(double x) {
  return scaled(x, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP", "YFLOP"});
}

std::string seconds(double x) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400, kYear = 365 * kDay;
  if (x < 1) return scaled(x * 1e9, 1000, {"ns", "µs", "ms"});
  if (x < 2 * kMinute) return fmt::format("{:.2f} s", x);
  if (x < 2 * kHour) return fmt::format("{:.2f} min", x / kMinute);
  if (x < 2 * kDay) return fmt::format("{:.2f} h", x / kHour);
  if (x < 2 * kYear) return fmt::format("{:.1f} days", x / kDay);
  return fmt::format("{:.3g} years", x / kYear);
}

std::string usd(double x) {
  if (x >= 1e6) return fmt::format("${:.2f} million", x / 1e6);
  if (x >= 100) return fmt::format("${}", grouped(std::llround(x)));
  return x >= 1 ? fmt::format("${:.2f}", x) : fmt::format("${:.3g}", x);
}

void TextTable::heading(const std::string& text) { text_ += (text_.empty() ? "" : "\n") + text + "\n"; }

void TextTable::row(const std::string& label, const std::string& value, const std::string& note) {
  text_ += fmt::format("  {:<32}{:>22}{}{}\n", label, value, note.empty() ? "" : "  ", note);
}

std::string TextTable::take() { return std::move(text_); }

}  // namespace transept
