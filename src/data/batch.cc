#include "data/batch.h"

#include <algorithm>

#include "base/check.h"

namespace transept {
namespace {

void append(BatchLayout& layout, std::vector<int32_t>& rows, std::span<const int32_t> sequence) {
  TRANSEPT_CHECK(!sequence.empty());
  layout.push_back({static_cast<int64_t>(rows.size()), static_cast<int64_t>(sequence.size()), 0});
  rows.insert(rows.end(), sequence.begin(), sequence.end());
}

}  // namespace

void Batch::add(std::span<const int32_t> row_tokens, std::span<const int32_t> row_targets) {
  TRANSEPT_CHECK(row_tokens.size() == row_targets.size());
  append(layout, tokens, row_tokens);
  targets.insert(targets.end(), row_targets.begin(), row_targets.end());
  target_count +=
      static_cast<int64_t>(row_targets.size()) - std::count(row_targets.begin(), row_targets.end(), kIgnoredTarget);
}

void Batch::add_source(std::span<const int32_t> row_tokens) { append(source_layout, source_tokens, row_tokens); }

}  // namespace transept
