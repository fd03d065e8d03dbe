#include "base/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace transept {
namespace {

constexpr std::array<std::pair<char, double>, 4> kSuffixes{{{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}}};

constexpr std::array<std::pair<std::string_view, double>, 9> kByteUnits{{{"KiB", 0x1p10},
                                                                         {"MiB", 0x1p20},
                                                                         {"GiB", 0x1p30},
                                                                         {"TiB", 0x1p40},
                                                                         {"kB", 1e3},
                                                                         {"KB", 1e3},
                                                                         {"MB", 1e6},
                                                                         {"GB", 1e9},
                                                                         {"TB", 1e12}}};

std::optional<double> positive_number(std::string_view text, double factor) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  value *= factor;
  if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text) {
  for (const auto& [letter, size] : kSuffixes) {
    if (text.empty() || (text.back() & ~0x20) != letter) continue;
    return positive_number(text.substr(0, text.size() - 1), size);
  }
  return positive_number(text, 1);
}

std::optional<double> parse_bytes(std::string_view text) {
  for (const auto& [unit, size] : kByteUnits) {
    if (text.ends_with(unit)) return positive_number(text.substr(0, text.size() - unit.size()), size);
  }
  return positive_number(text, 1);
}

std::string quantity_text(double value) {
  if (!std::isfinite(value)) return "–";
  if (std::abs(value) >= 999.5e12 || (std::abs(value) < 0.01 && value != 0)) return fmt::format("{:.3g}", value);
  std::string suffix;
  for (const auto& [letter, size] : kSuffixes) {
    if (std::abs(value) < 0.9995 * size) break;
    suffix = letter;
  }
  for (const auto& [letter, size] : kSuffixes) {
    if (suffix == std::string(1, letter)) value /= size;
  }
  const double size = std::abs(value);
  return fmt::format("{:.{}f}{}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2, suffix);
}

}  // namespace transept
