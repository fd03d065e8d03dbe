// Attention in double, written from the formulas (arXiv:1706.03762 section 3.2.1; the options: kernels/attention.h):
// what the tiled kernels are held to.
#pragma once

#include <cstdint>
#include <vector>

namespace transept::ref {

// One sequence. q is [rows, heads, head_dim], out [rows, heads, value_dim]; k [keys, kv_heads, head_dim] and v [keys,
// kv_heads, value_dim] with a position each.
struct AttentionInput {
  int64_t heads = 1, kv_heads = 1, head_dim = 1;
  double scale = 1;
  int64_t window = 0;  // 0: none
  int64_t first_position = 0;
  std::vector<int64_t> key_positions;
  std::vector<double> q, k, v;
  bool causal = true;
  double softcap = 0;  // 0: none
  // [kv_heads, distances, heads / kv_heads], the first distance being bias_first; empty: none.
  std::vector<double> bias = {};
  int64_t bias_first = 0;
  std::vector<double> sinks = {};  // [heads]; empty: none
  int64_t value_dim = 0;           // 0: head_dim

  int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
};

struct AttentionOutput {
  std::vector<double> out;
  std::vector<double> lse;  // [rows, heads]; where no key is seen, the sink or -infinity
};

struct AttentionGradients {
  std::vector<double> dq, dk, dv, d_bias, d_sinks;
};

// softmax over the visible keys of one query (and its sink, whose share is in no element): [keys], 0 where hidden.
// Reads no values. Fills in the log-sum-exp, and the derivative of each score, as capped, by the score before.
std::vector<double> attention_probabilities(const AttentionInput& in, int64_t row, int64_t head, double* lse = nullptr,
                                            std::vector<double>* slopes = nullptr);
AttentionOutput attention_forward(const AttentionInput& in);
AttentionGradients attention_backward(const AttentionInput& in, const std::vector<double>& d_out);

}  // namespace transept::ref
