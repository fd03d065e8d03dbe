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

// Whether the letters of `name` stand in `whole` in their order.
bool is_shortening(std::string_view name, std::string_view whole) {
  size_t matched = 0;
  for (const char c : whole) matched += matched < name.size() && name[matched] == c ? 1 : 0;
  return matched == name.size();
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  if (name.empty() || name.size() > kLongestName) return {};
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    // A shortened name ("heads", "num_kv_heads") is a likelier slip than the number of its missing letters tells.
    const size_t edits = edit_distance(name, candidate);
    const size_t distance = name.size() >= 4 && is_shortening(name, candidate) ? std::min<size_t>(2, edits) : edits;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace transept
