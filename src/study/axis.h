// Axes: round ticks and the map from values to pixels. Linear steps are 1, 2 or 5 times a power of ten (Heckbert, "Nice
// numbers for graph labels", Graphics Gems, 1990); a logarithmic axis takes powers of ten, with 2 and 5 between them
// where there is room.
#pragma once

#include <string>
#include <vector>

namespace transept {

struct Tick {
  double value;
  std::string label;
};

// Ticks inside [low, high], ascending, about `wanted` of them, at most 3 * wanted. low < high, both finite; on a log
// axis low > 0.
std::vector<Tick> make_ticks(double low, double high, int wanted, bool log);

// Whether a value can be drawn: finite (and well inside double's range, so that differences are too), and positive on a
// log axis.
bool drawable(double value, bool log);

// The interval of the drawable values widened so that it is never empty; {0, 1} (log: {1, 10}) when there are none.
struct Interval {
  double low, high;
};
Interval cover(const std::vector<double>& values, bool log);

// The interval widened to whole tick steps (linear only).
Interval round_outward(Interval interval, int wanted);

// value to pixels: `interval` onto [from, to].
class Scale {
 public:
  Scale(Interval interval, double from, double to, bool log);
  double operator()(double value) const;

 private:
  double low_, high_, from_, to_;
  bool log_;
};

}  // namespace transept
