// Stable sorting by a comparison that may throw, and that hostile values (numbers that are none) make inconsistent:
// merging never leaves its ranges, whatever it is told.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace transept::jinja {

// The places 0 .. size - 1 in ascending order; less(a, b) compares what stands at two places.
template <class Less>
std::vector<size_t> sorted_places(size_t size, const Less& less) {
  std::vector<size_t> places(size), merged(size);
  std::iota(places.begin(), places.end(), size_t{0});
  for (size_t width = 1; width < size; width *= 2) {
    for (size_t begin = 0; begin < size; begin += 2 * width) {
      const auto at = [&](size_t place) { return places.begin() + static_cast<std::ptrdiff_t>(std::min(place, size)); };
      std::merge(at(begin), at(begin + width), at(begin + width), at(begin + 2 * width),
                 merged.begin() + static_cast<std::ptrdiff_t>(begin), less);
    }
    places.swap(merged);
  }
  return places;
}

}  // namespace transept::jinja
