#include "data/sampler.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace transept {
namespace {

int64_t units_of(const Split& split, int64_t window, int64_t stride) {
  switch (split.unit()) {
    case Unit::kStream:
      // How many windows fit for every phase below a stride; at least one, since a part holds a whole window.
      TRANSEPT_CHECK(split.tokens() >= window);
      return std::max<int64_t>(1, (split.tokens() - stride) / stride);
    case Unit::kLines:
      return split.documents();
    case Unit::kPairs:
      return split.documents() / 2;
  }
  TRANSEPT_CHECK(false);
  return 0;
}

}  // namespace

Sampler::Sampler(const Split& split, int64_t context, int64_t batch, uint64_t seed, const ExampleOptions& options,
                 const Vocabulary& vocabulary)
    : split_(split),
      context_(context),
      batch_(batch),
      seed_(seed),
      options_(options),
      vocabulary_(&vocabulary),
      window_(window_tokens(options.objective, context, vocabulary)),
      stride_(options.objective == Objective::kCausal ? context : window_),
      units_(units_of(split, window_, stride_)) {
  TRANSEPT_CHECK(context >= 1 && batch >= 1 && units_ >= 1);
  TRANSEPT_CHECK((options.objective == Objective::kSeq2seq) == (split.unit() == Unit::kPairs));
}

Batch Sampler::batch(uint64_t index) const {
  const CounterRng phases(seed_, Stream::kData);
  const uint64_t units = static_cast<uint64_t>(units_), first = index * static_cast<uint64_t>(batch_);
  Batch out;
  for (uint64_t example = first; example < first + static_cast<uint64_t>(batch_); ++example) {
    const uint64_t epoch = example / units;
    const int64_t unit = static_cast<int64_t>(permute(example % units, units, seed_, epoch));
    Draws draws(seed_, example);
    switch (split_.unit()) {
      case Unit::kStream: {
        // Any place from which all windows fit, so that the ends of the text have their turn as well.
        const uint64_t phases_that_fit =
            static_cast<uint64_t>(split_.tokens() - units_ * stride_ - (window_ - stride_) + 1);
        const int64_t phase = static_cast<int64_t>(phases.below(epoch, phases_that_fit));
        add_window(split_, phase + unit * stride_, window_, options_, *vocabulary_, draws, out);
        break;
      }
      case Unit::kLines:
        add_line(split_, unit, context_, options_, *vocabulary_, draws, out);
        break;
      case Unit::kPairs:
        add_pair(split_, unit, *vocabulary_, out);
        break;
    }
  }
  return out;
}

}  // namespace transept
