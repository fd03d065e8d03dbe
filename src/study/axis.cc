#include "study/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace transept {
namespace {

constexpr double kLargest = 1e300;

double nice_step(double low, double high, int wanted) {
  const double raw = (high - low) / std::max(1, wanted);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double lead = raw / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

// Decimals that a multiple of `step` needs.
int decimals_of(double step) { return std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9))); }

std::string strip_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// A label among others that are multiples of `step` and at most `largest` in size.
std::string label_of(double value, double step, double largest) {
  if (std::abs(value) < step * 1e-6) return "0";
  if (largest >= 1e15 || largest < 1e-3) {
    const int exponent = static_cast<int>(std::floor(std::log10(largest) + 1e-9));
    const double unit = std::pow(10, exponent);
    return fmt::format("{:.{}f}e{}", value / unit, decimals_of(step / unit), exponent);
  }
  double divisor = 1;
  std::string_view suffix;
  for (const auto& [size, name] :
       {std::pair{1e12, "T"}, std::pair{1e9, "G"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
    if (largest < size || (size == 1e3 && largest < 1e4)) continue;  // 2,000 reads better than 2k
    divisor = size;
    suffix = name;
    break;
  }
  return fmt::format("{:.{}f}{}", value / divisor, decimals_of(step / divisor), suffix);
}

}  // namespace

bool drawable(double value, bool log) {  // a comparison with NaN is false
  return std::abs(value) < kLargest && (!log || value > 1 / kLargest);
}

Interval cover(const std::vector<double>& values, bool log) {
  bool any = false;
  Interval all{0, 1};
  for (const double v : values) {
    if (!drawable(v, log)) continue;
    all = any ? Interval{std::min(all.low, v), std::max(all.high, v)} : Interval{v, v};
    any = true;
  }
  if (!any) return log ? Interval{1, 10} : Interval{0, 1};
  const double size = std::max(std::abs(all.low), std::abs(all.high));
  if (all.high - all.low > size * 1e-9) return all;
  if (log) return {all.low / 2, all.high * 2};
  const double half = size > 0 ? size / 10 : 1;
  return {all.low - half, all.high + half};
}

Interval round_outward(Interval interval, int wanted) {
  const double step = nice_step(interval.low, interval.high, wanted);
  return {std::floor(interval.low / step + 1e-9) * step, std::ceil(interval.high / step - 1e-9) * step};
}

std::vector<Tick> make_ticks(double low, double high, int wanted, bool log) {
  TRANSEPT_CHECK(std::isfinite(low) && std::isfinite(high) && low < high && (!log || low > 0));
  std::vector<Tick> ticks;
  const double decades = log ? std::log10(high / low) : 0;
  if (log && decades >= 1) {
    const int every = std::max(1, static_cast<int>(std::ceil(decades / std::max(1, wanted))));
    const bool between = every == 1 && 3 * decades <= 1.5 * wanted;
    for (int e = static_cast<int>(std::floor(std::log10(low))); e <= static_cast<int>(std::ceil(std::log10(high)));
         ++e) {
      for (const double lead : {1.0, 2.0, 5.0}) {
        if (lead != 1.0 && !between) continue;
        if (lead == 1.0 && !between && ((e % every) + every) % every != 0) continue;
        const double v = lead * std::pow(10, e);
        if (v < low * (1 - 1e-9) || v > high * (1 + 1e-9)) continue;
        const bool plain = v >= 1e-3 && v < 1e15;
        ticks.push_back({v, plain ? strip_zeros(label_of(v, std::pow(10, e), v)) : fmt::format("{:.0f}e{}", lead, e)});
      }
    }
    return ticks;
  }
  const double step = nice_step(low, high, wanted);
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  const double largest = std::max(std::abs(first * step), std::abs(last * step));
  for (double i = first; i <= last && ticks.size() < static_cast<size_t>(3 * std::max(1, wanted)); ++i) {
    ticks.push_back({i * step, label_of(i * step, step, largest)});
  }
  return ticks;
}

Scale::Scale(Interval interval, double from, double to, bool log)
    : low_(log ? std::log(interval.low) : interval.low),
      high_(log ? std::log(interval.high) : interval.high),
      from_(from),
      to_(to),
      log_(log) {}

double Scale::operator()(double value) const {
  return from_ + ((log_ ? std::log(value) : value) - low_) / (high_ - low_) * (to_ - from_);
}

}  // namespace transept
