#include "train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace transept {
namespace {
constexpr std::array<std::string_view, 4> kNames{"constant", "linear", "cosine", "wsd"};
}

std::string_view schedule_name(ScheduleKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<ScheduleKind> schedule_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ScheduleKind>(i);
  }
  return std::nullopt;
}

double Schedule::rate(int64_t step) const {
  if (step <= warmup_steps) return peak * static_cast<double>(step) / static_cast<double>(warmup_steps);
  // Progress of the decay: 0 at its first step's predecessor, 1 at the last step.
  const int64_t decay_begin =
      kind == ScheduleKind::kWsd ? std::max(warmup_steps, total_steps - decay_steps) : warmup_steps;
  const int64_t length = total_steps - decay_begin;
  const double t =
      length <= 0 ? 0.0 : std::clamp(static_cast<double>(step - decay_begin) / static_cast<double>(length), 0.0, 1.0);
  switch (kind) {
    case ScheduleKind::kConstant:
      return peak;
    case ScheduleKind::kCosine:
      return minimum + (peak - minimum) * 0.5 * (1.0 + std::cos(std::numbers::pi * t));
    case ScheduleKind::kLinear:
    case ScheduleKind::kWsd:
      return peak + (minimum - peak) * t;
  }
  return peak;
}

Schedule usual_schedule(ScheduleKind kind, double peak, int64_t total_steps) {
  return {.kind = kind,
          .peak = peak,
          .minimum = peak / 10,
          .warmup_steps = std::min<int64_t>(100, total_steps / 10),
          .decay_steps = total_steps / 5,
          .total_steps = total_steps};
}

}  // namespace transept
