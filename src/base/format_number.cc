#include "base/format_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace transept {
namespace {

// "-1234567.5" to "-1,234,567.5".
std::string with_separators(const std::string& text) {
  const size_t start = text[0] == '-' ? 1 : 0;
  const size_t end = std::min(text.find_first_not_of("0123456789", start), text.size());
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > start && i < end && (end - i) % 3 == 0) out.push_back(',');
    out.push_back(text[i]);
  }
  return out;
}

// "3.0e-04" to "3e-4".
std::string tidy_exponent(std::string text) {
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  std::string mantissa = text.substr(0, e);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return fmt::format("{}e{}", mantissa, std::stoi(text.substr(e + 1)));
}

}  // namespace

std::string exact_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); }

std::string format_number(double value) {
  if (std::isnan(value)) return std::string(kNothing);
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 1e-3 || size >= 1e15) return tidy_exponent(fmt::format("{:.3e}", value));
  if (size >= 1000) return with_separators(fmt::format("{:.0f}", value));
  const std::string text = fmt::format("{:.{}f}", value, size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
  return value == std::floor(value) ? text.substr(0, text.find('.')) : text;
}

std::string format_count(double value) {
  if (!std::isfinite(value) || std::abs(value) >= 0x1p63) return format_number(value);
  return with_separators(fmt::format("{:.0f}", value));
}

std::string format_si(double value, std::string_view unit) {
  if (!std::isfinite(value)) return format_number(value);
  constexpr std::array<std::string_view, 7> kPrefixes{"", "k", "M", "G", "T", "P", "E"};
  size_t step = 0;
  for (; std::abs(value) >= 999.5 && step + 1 < kPrefixes.size(); ++step) value /= 1000;
  const double size = std::abs(value);
  const bool whole = step == 0 && value == std::floor(value);
  const int decimals = whole || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  const std::string suffix = fmt::format("{}{}", kPrefixes[step], unit);
  return fmt::format("{:.{}f}{}{}", value, decimals, suffix.empty() ? "" : " ", suffix);
}

std::string format_bytes(double value) {
  if (!std::isfinite(value)) return format_number(value);
  constexpr std::array<std::string_view, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t step = 0;
  for (; std::abs(value) >= 1000 && step + 1 < kUnits.size(); ++step) value /= 1024;
  const double size = std::abs(value);
  return fmt::format("{:.{}f} {}", value, step == 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2, kUnits[step]);
}

std::string format_percent(double fraction) {
  if (!std::isfinite(fraction)) return format_number(fraction);
  if (fraction == 0) return "0 %";
  return fmt::format("{:+.2f} %", fraction * 100);
}

}  // namespace transept
