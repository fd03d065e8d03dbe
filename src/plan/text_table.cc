#include "plan/text_table.h"

#include <fmt/format.h>

#include <utility>

#include "base/format_number.h"

namespace transept {

std::string seconds(double x) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400, kYear = 365 * kDay;
  if (x < 1e-3) return fmt::format("{:.3g} µs", x * 1e6);
  if (x < 1) return fmt::format("{:.2f} ms", x * 1e3);
  if (x < 2 * kMinute) return fmt::format("{:.2f} s", x);
  if (x < 2 * kHour) return fmt::format("{:.2f} min", x / kMinute);
  if (x < 2 * kDay) return fmt::format("{:.2f} h", x / kHour);
  if (x < 2 * kYear) return fmt::format("{:.1f} days", x / kDay);
  return fmt::format("{:.3g} years", x / kYear);
}

std::string usd(double x) {
  if (x >= 1e6) return fmt::format("${:.2f} million", x / 1e6);
  if (x >= 100) return fmt::format("${}", format_count(x));
  return x >= 1 ? fmt::format("${:.2f}", x) : fmt::format("${:.3g}", x);
}

void TextTable::heading(const std::string& text) { text_ += (text_.empty() ? "" : "\n") + text + "\n"; }

void TextTable::row(const std::string& label, const std::string& value, const std::string& note) {
  text_ += fmt::format("  {:<32}{:>22}{}{}\n", label, value, note.empty() ? "" : "  ", note);
}

std::string TextTable::take() { return std::move(text_); }

}  // namespace transept
