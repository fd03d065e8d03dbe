// Attention as it grows, from one head of scaled dot products to a layer of grouped heads, as the program computes it
// (ops/attention.h, nn/attention/attention.h: tiled, fused, in float32) against the paper's formulas in double
// (plain_attention.h) on the same numbers: results, and the gradients of a random gradient of the result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/thread_pool.h"

namespace transept {

// Each adds one thing to the one before:
//   dot_product  softmax(q k^T / sqrt(d_k)) v, one head, every key seen (arXiv:1706.03762 section 3.2.1)
//   causal       a query sees the keys up to its own place (section 3.2.3)
//   multi_head   several heads side by side (section 3.2.2)
//   projected    the layer: queries, keys and values by one fused projection of the input, and the output projection
//   grouped      the layer with half as many heads of keys and values (an odd number of heads: one), arXiv:2305.13245
std::span<const std::string_view> attention_forms();

// The largest error of any element, relative to the largest element in double. The layers have the gradients of the
// weights that make queries, keys and values in place of those of queries, keys and values.
struct AttentionErrors {
  double output = 0;
  double gradient_query = 0, gradient_key = 0, gradient_value = 0;
  std::optional<double> gradient_output_weight;  // of the layers
};

// Random normal numbers, drawn from the seed alone. The first two forms have one head, whatever `heads` says.
// InputError for an unknown form, fewer than two tokens (with one there is nothing to choose from, and no gradient), or
// sizes below one.
AttentionErrors attention_errors(ThreadPool& pool, std::string_view form, int64_t tokens, int64_t heads,
                                 int64_t head_dim, uint64_t seed);

}  // namespace transept
