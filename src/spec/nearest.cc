#include "spec/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace transept {
namespace {

constexpr size_t kLongestName = 64;  // nothing known is longer; bounds the work on hostile names

// Levenshtein distance by the two-row recurrence.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  if (name.empty() || name.size() > kLongestName) return {};
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    // A name that is the start or the end of a known one ("heads" of "num_attention_heads") is a likelier slip than its length tells.
    const bool part = name.size() >= 4 && (candidate.starts_with(name) || candidate.ends_with(name));
    const size_t distance = part ? 2 : edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace transept
