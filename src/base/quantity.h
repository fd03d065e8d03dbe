// Counts of parameters, tokens and FLOPs, and bytes, as the field writes them: "7e9", "7B", "1.4T", "5.76e23", "24GiB".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace transept {

// A positive, finite decimal number, K, M, B or T (thousand, million, billion, trillion; either case) after it or not.
// Nothing for any other text.
std::optional<double> parse_quantity(std::string_view text);

// Bytes: as above with nothing, kB, MB, GB, TB (KB too) or KiB, MiB, GiB, TiB after the number.
std::optional<double> parse_bytes(std::string_view text);

// Three significant digits: "350M", "70.0B", "1.40T"; below a thousand and from a thousand trillions on "12.5" and
// "5.76e+23". "–" when not finite.
std::string quantity_text(double value);

// The limits within which counts are taken. Beyond them no training is meant, and within them no formula of this folder
// leaves the range of a double.
struct QuantityRange {
  double low, high;
  bool holds(double value) const { return value >= low && value <= high; }
};
inline constexpr QuantityRange kParamsRange{1, 1e20};
inline constexpr QuantityRange kTokensRange{1, 1e24};
inline constexpr QuantityRange kFlopsRange{1e6, 1e40};

}  // namespace transept
