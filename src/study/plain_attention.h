// Attention as "Attention is all you need" writes it (arXiv:1706.03762 sections 3.2.1 and 3.2.2), in double and in
// loops, with the gradients that follow from it by the chain rule. To be read, and to hold the fast forms to: they
// tile, fuse and round, and must give the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace transept::plain {

// [rows, columns], row by row.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> elements = std::vector<double>(static_cast<size_t>(rows * columns));

  double& at(int64_t row, int64_t column) { return elements[static_cast<size_t>(row * columns + column)]; }
  double at(int64_t row, int64_t column) const { return elements[static_cast<size_t>(row * columns + column)]; }
};

// A query sees every key, or those up to its own place.
enum class Mask { kNone, kCausal };

// One head (section 3.2.1). q [queries, d_k], k [keys, d_k], v [keys, d_v].
struct Head {
  Matrix probabilities;  // softmax(q k^T / sqrt(d_k)), [queries, keys]
  Matrix output;         // probabilities v, [queries, d_v]
};
Head scaled_dot_product_attention(const Matrix& q, const Matrix& k, const Matrix& v, Mask mask);

// What a small step of each input changes, given what a step of the output changes, d_output.
struct InputGradients {
  Matrix q, k, v;
};
InputGradients scaled_dot_product_attention_gradients(const Matrix& q, const Matrix& k, const Matrix& v,
                                                      const Head& head, const Matrix& d_output);

// Several heads side by side (section 3.2.2): q [tokens, heads d], k and v [tokens, kv_heads d], result [tokens, heads
// d]. Query head h reads the keys and values h / (heads / kv_heads), so with fewer of these a group of queries shares
// one (arXiv:2305.13245).
struct HeadCounts {
  int64_t heads = 1, kv_heads = 1;
};
Matrix multi_head_attention(const Matrix& q, const Matrix& k, const Matrix& v, HeadCounts counts, Mask mask);
InputGradients multi_head_attention_gradients(const Matrix& q, const Matrix& k, const Matrix& v, HeadCounts counts,
                                              Mask mask, const Matrix& d_output);

// The whole layer: MultiHead(x W_q, x W_k, x W_v) W_o. x [tokens, d_model]; w_q [d_model, heads d], w_k and w_v
// [d_model, kv_heads d], w_o [heads d, d_model]: the W_i of the paper's heads side by side.
struct Projections {
  Matrix w_q, w_k, w_v, w_o;
};
Matrix attention_layer(const Matrix& x, const Projections& w, HeadCounts counts, Mask mask);
// Of the four weights.
Projections attention_layer_gradients(const Matrix& x, const Projections& w, HeadCounts counts, Mask mask,
                                      const Matrix& d_output);

}  // namespace transept::plain
