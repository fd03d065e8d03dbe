#include "study/calibration_text.h"

#include <algorithm>

namespace transept {
namespace {

constexpr int64_t kLeastTokens = 32768;
constexpr int64_t kTokensAnElement = 16;
constexpr int64_t kBatchTokens = 4096;

}  // namespace

int64_t read_calibration_text(const Split& training, int64_t context, const ExampleOptions& examples,
                              const Vocabulary& vocabulary, uint64_t seed, int64_t hidden_size,
                              const std::function<void(const Batch&)>& read) {
  const int64_t wanted = std::max(kLeastTokens, kTokensAnElement * hidden_size);
  const int64_t at_once = std::max<int64_t>(1, kBatchTokens / context);
  const Sampler sampler(training, context, at_once, seed, examples, vocabulary);
  int64_t tokens = 0;
  for (int64_t i = 0; i * at_once < sampler.units_per_epoch() && tokens < wanted; ++i) {
    const Batch batch = sampler.batch(static_cast<uint64_t>(i));
    read(batch);
    tokens += batch.rows();
  }
  return tokens;
}

}  // namespace transept
