// Activation memory, written out for one shape, and its scaling.
#include "plan/activations.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "spec/presets.h"
#include "tensor/logit_rows.h"

namespace transept {
namespace {

// V512 L6 d384 h6 kv2 (head size 64) ffn 1024, RMSNorm; 16 sequences of 256.
TEST(Activations, WrittenOut) {
  const ArchSpec spec = preset("bench-a");
  const int64_t n = 16 * 256;
  const ActivationBytes bytes = activation_bytes(spec, {.batch = 16, .context = 256});
  EXPECT_EQ(bytes.saved_layers, 4 * 6 * n * (4 * 384 + (6 + 2 * 2) * 64 + 6 * 64 + 6 + 2 * 1024 + 2));
  EXPECT_EQ(bytes.saved_ends, 4 * n * (2 * 384 + 1));
  EXPECT_EQ(bytes.head_transient, 4 * (1024 * 512 + n * 384));
  // The last layer's feed-forward: the gradient of its output, and the activation made again.
  EXPECT_EQ(bytes.backward_transient, 4 * n * (384 + 1024));
  EXPECT_EQ(bytes.total(), bytes.saved_layers + bytes.backward_transient);
}

TEST(Activations, Recomputed) {
  const ArchSpec spec = preset("bench-a");
  const int64_t n = 16 * 256;
  const ActivationBytes whole = activation_bytes(spec, {.batch = 16, .context = 256}),
                        again = activation_bytes(spec, {.batch = 16, .context = 256, .recompute = Recompute::kFull});
  EXPECT_EQ(again.saved_layers, 4 * 6 * n * 384);
  // The saved set of one layer beside its input, and at the end of its second forward pass the output.
  EXPECT_EQ(again.backward_transient, whole.backward_transient + whole.saved_layers / 6 - 4 * n * 384 + 4 * n * 384);
  EXPECT_EQ(again.saved_ends, whole.saved_ends);
  EXPECT_LT(again.total(), whole.total());
}

TEST(Activations, DropoutMasksACopyOfTheGradient) {
  const ArchSpec spec = spec_from_json({{"extends", "bench-a"}, {"dropout", 0.1}}, "t");
  const int64_t n = 16 * 256;
  EXPECT_EQ(activation_bytes(spec, {.batch = 16, .context = 256}).total(),
            activation_bytes(preset("bench-a"), {.batch = 16, .context = 256}).total() + 4 * n * 384);
}

// Heads much wider than the model: the attention's own gradients are the most that a layer needs.
TEST(Activations, WideAttention) {
  const ArchSpec spec = spec_from_json({{"extends", "bench-a"},
                                        {"attention", {{"head_dim", 512}, {"num_key_value_heads", 6}}},
                                        {"layers", {{{"repeat", 1}}}}},
                                       "t");
  const int64_t n = 16 * 256, heads = 6 * 512;
  EXPECT_EQ(activation_bytes(spec, {.batch = 16, .context = 256}).total(),
            4 * n * ((2 * 384 + 1 + 3 * heads + heads + 6) + 384 + heads + 3 * heads));
}

// A layer that keeps little after one that keeps much: the first one's turn is the fullest moment only with
// recomputation.
TEST(Activations, LayersThatDiffer) {
  const Json wide = {{"ffn", {{"intermediate_size", 65536}}}};
  const ArchSpec spec = spec_from_json({{"extends", "bench-a"}, {"layers", {wide, {{"repeat", 5}}}}}, "t");
  const int64_t n = 256;
  const ActivationBytes again = activation_bytes(spec, {.batch = 1, .context = 256, .recompute = Recompute::kFull});
  EXPECT_EQ(again.total(), 4 * n * ((4 * 384 + (6 + 2 * 2) * 64 + 6 * 64 + 6 + 2 * 65536 + 2) + 2 * 384 + 65536));
}

TEST(Activations, HeadTakesOverWithALargeVocabulary) {
  const ArchSpec spec = spec_from_json({{"extends", "small-1m"}, {"vocab_size", 1 << 20}}, "t");
  const ActivationBytes bytes = activation_bytes(spec, {.batch = 1, .context = 128});
  EXPECT_EQ(bytes.head_transient, 4 * (int64_t{64} * (1 << 20) + 128 * 128));
  EXPECT_EQ(bytes.total(), bytes.saved_layers + bytes.saved_ends + bytes.head_transient);
}

TEST(Activations, RowsOfLogits) {
  EXPECT_EQ(logit_rows(512), 1024);
  EXPECT_EQ(logit_rows(8192), 512);
  EXPECT_EQ(logit_rows(50257), 83);
  EXPECT_EQ(logit_rows(1 << 20), 64);
}

TEST(Activations, GrowWithRowsOnly) {
  const ArchSpec spec = preset("small-10m");
  EXPECT_EQ(activation_bytes(spec, {.batch = 8, .context = 128}).saved_layers,
            activation_bytes(spec, {.batch = 2, .context = 512}).saved_layers);
  EXPECT_EQ(activation_bytes(spec, {.batch = 8, .context = 128}).saved_layers,
            8 * activation_bytes(spec, {.batch = 1, .context = 128}).saved_layers);
}

TEST(Activations, PostNormKeepsNoFinalNorm) {
  const ArchSpec post = spec_from_json({{"extends", "small-1m"}, {"norm", {{"placement", "post"}}}}, "t");
  EXPECT_EQ(activation_bytes(post, {.batch = 1, .context = 64}).saved_ends, 4 * 64 * 128);
  EXPECT_EQ(activation_bytes(post, {.batch = 1, .context = 64}).saved_layers,
            activation_bytes(preset("small-1m"), {.batch = 1, .context = 64}).saved_layers);
}

TEST(Activations, Inference) {
  // Residual, its norm, then the wider of attention (qkv and output) and ffn (gate, up and their product).
  EXPECT_EQ(inference_bytes(preset("bench-a"), 10, 3), 4 * (10 * (2 * 384 + 3 * 1024) + 3 * 512));
}

// Two heads of 16 + 8 and values of 12, a latent of 20: beside residual and norm, queries, records, values, and the
// absorbed queries and sums of latents; of each cached token its expanded keys and values.
TEST(Activations, InferenceOverLatents) {
  const ArchSpec spec = spec_from_json({{"extends", "bench-a"},
                                        {"attention",
                                         {{"kind", "mla"},
                                          {"num_attention_heads", 2},
                                          {"kv_lora_rank", 20},
                                          {"qk_nope_head_dim", 16},
                                          {"qk_rope_head_dim", 8},
                                          {"v_head_dim", 12}}},
                                        {"ffn", {{"intermediate_size", 8}}}},
                                       "t");
  const int64_t row = 2 * 384 + 2 * 24 + 28 + 2 * 12 + 2 * 28 + 2 * 20;
  EXPECT_EQ(inference_bytes(spec, 10, 3, 100), 4 * (10 * row + 100 * 2 * (24 + 12) + 3 * 512));
}

}  // namespace
}  // namespace transept
