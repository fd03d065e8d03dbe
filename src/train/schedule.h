// Learning-rate schedules. Steps are numbered from 1; warm-up is linear and the first step already has a rate above
// zero (peak / warmup).
//   constant: the peak.
//   linear:   falls in a straight line from the peak, at the end of warm-up, to the minimum at the last step.
//   cosine:   falls along half a cosine between the same points (arXiv:1608.03983).
//   wsd:      stays at the peak and falls in a straight line over the last `decay_steps` (warm-up, stable, decay:
//   arXiv:2404.06395).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace transept {

enum class ScheduleKind { kConstant, kLinear, kCosine, kWsd };
std::string_view schedule_name(ScheduleKind kind);
std::optional<ScheduleKind> schedule_from_name(std::string_view name);

struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak = 1e-3;
  double minimum = 1e-4;
  int64_t warmup_steps = 0;
  int64_t decay_steps = 0;  // wsd
  int64_t total_steps = 1;

  double rate(int64_t step) const;  // step in [1, total_steps]
};

// With what suits most runs where nothing else is asked: a tenth of the peak at the end, a tenth of the steps (100 at
// the most) to warm up, a fifth of them for wsd to decay.
Schedule usual_schedule(ScheduleKind kind, double peak, int64_t total_steps);

}  // namespace transept
