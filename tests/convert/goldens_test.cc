// Logits of transformers' own checkpoints, in one pass and through the cache in chunks (tools/make_goldens.py wrote
// them).
#include <gtest/gtest.h>

#include "convert/model_folder.h"
#include "infer/decoder.h"
#include "support/compare.h"
#include "support/goldens.h"
#include "support/tolerances.h"

namespace transept {
namespace {

std::vector<std::string> logit_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(goldens() / "logits"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class LogitGoldens : public ::testing::TestWithParam<std::string> {};

TEST_P(LogitGoldens, EqualTransformers) {
  const auto folder = goldens() / "logits" / GetParam();
  const auto model = load_model(folder);
  const std::vector<int32_t> tokens = read_tokens(folder / "tokens.npy");
  const std::vector<float> expected = read_npy(folder / "logits.npy").as_f32();
  ASSERT_EQ(expected.size(), tokens.size() * static_cast<size_t>(model->spec().vocab_size));
  ThreadPool pool(2);
  std::vector<float> logits(expected.size());
  forward_logits(*model, pool, tokens, logits);
  EXPECT_TRUE(close(logits, expected, tolerance::kLogits));
  for (const size_t chunk : {size_t{1}, size_t{3}, size_t{5}, tokens.size()}) {
    std::fill(logits.begin(), logits.end(), NAN);
    Decoder decoder(*model, pool, static_cast<int64_t>(tokens.size()));
    const size_t vocab = static_cast<size_t>(model->spec().vocab_size);
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      const size_t count = std::min(chunk, tokens.size() - at);
      decoder.feed_all(std::span(tokens).subspan(at, count), std::span(logits).subspan(at * vocab, count * vocab));
    }
    EXPECT_TRUE(close(logits, expected, tolerance::kLogits)) << "in chunks of " << chunk;
  }
  // Negative control: one weight changed by a tenth of the matrices' scale is seen.
  const auto* entry = model->parameters().find("layers.1.attention.qkv.weight");
  ASSERT_NE(entry, nullptr);
  model->parameters().values(*entry)[3] += 0.1f;
  forward_logits(*model, pool, tokens, logits);
  EXPECT_FALSE(close(logits, expected, tolerance::kLogits));
}

INSTANTIATE_TEST_SUITE_P(Cases, LogitGoldens, ::testing::ValuesIn(logit_cases()));

TEST(LogitGoldens, AreAllThere) { EXPECT_GE(logit_cases().size(), 11u); }

}  // namespace
}  // namespace transept
