#include "data/sampler.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace transept {
namespace {

// How many windows fit for every phase below `context`; at least one, since a part holds more than `context` tokens.
int64_t windows(int64_t tokens, int64_t context) { return std::max<int64_t>(1, (tokens - context) / context); }

}  // namespace

Sampler::Sampler(const Split& split, int64_t context, int64_t batch, uint64_t seed)
    : split_(split), context_(context), batch_(batch), seed_(seed) {
  TRANSEPT_CHECK(context >= 1 && batch >= 1);
  TRANSEPT_CHECK(split.unit() == Unit::kLines ? split.documents() >= 1 : split.tokens() > context);
  units_ = split.unit() == Unit::kLines ? split.documents() : windows(split.tokens(), context);
}

Batch Sampler::batch(uint64_t index) const {
  struct Row {
    int64_t begin, tokens;  // tokens read, one more than inputs
  };
  const CounterRng phases(seed_, Stream::kData);
  const uint64_t units = static_cast<uint64_t>(units_), first = index * static_cast<uint64_t>(batch_);
  std::vector<Row> rows;
  Batch out;
  out.sequences = batch_;
  for (uint64_t i = 0; i < static_cast<uint64_t>(batch_); ++i) {
    const uint64_t epoch = (first + i) / units;
    const int64_t unit = static_cast<int64_t>(permute((first + i) % units, units, seed_, epoch));
    if (split_.unit() == Unit::kLines) {
      rows.push_back({split_.document_begin(unit), std::min(split_.document_tokens(unit), context_ + 1)});
    } else {
      // Any place from which all windows fit, so that the ends of the text have their turn as well.
      const uint64_t phases_that_fit = static_cast<uint64_t>(split_.tokens() - units_ * context_);
      const int64_t phase = static_cast<int64_t>(phases.below(epoch, phases_that_fit));
      rows.push_back({phase + unit * context_, context_ + 1});
    }
    out.length = std::max(out.length, rows.back().tokens - 1);
  }
  // A document may be nothing but its eos; a batch of only such ones still has a column.
  out.length = std::max<int64_t>(out.length, 1);
  out.tokens.assign(static_cast<size_t>(out.sequences * out.length), split_.pad());
  out.targets.assign(out.tokens.size(), kIgnoredTarget);
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t at = r * static_cast<size_t>(out.length);
    const int64_t inputs = rows[r].tokens - 1;
    split_.copy(rows[r].begin, std::max<int64_t>(inputs, 1), out.tokens.data() + at);
    split_.copy(rows[r].begin + 1, inputs, out.targets.data() + at);
    out.target_count += inputs;
  }
  return out;
}

}  // namespace transept
