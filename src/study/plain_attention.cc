#include "study/plain_attention.h"

#include <algorithm>
#include <cmath>

namespace transept::plain {
namespace {

Matrix transposed(const Matrix& a) {
  Matrix t{a.columns, a.rows};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) t.at(j, i) = a.at(i, j);
  }
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return c;
}

// Columns [first, first + count).
Matrix columns_of(const Matrix& a, int64_t first, int64_t count) {
  Matrix part{a.rows, count};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < count; ++j) part.at(i, j) = a.at(i, first + j);
  }
  return part;
}

void add_to_columns(const Matrix& part, int64_t first, Matrix& a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < part.columns; ++j) a.at(i, first + j) += part.at(i, j);
  }
}

// softmax(s)_j = exp(s_j) / sum_l exp(s_l) over the first `count` elements of a row, 0 behind them. The largest element
// is taken off first: that changes nothing but keeps exp in range.
void softmax_row(Matrix& s, int64_t row, int64_t count) {
  double largest = s.at(row, 0), sum = 0;
  for (int64_t j = 0; j < count; ++j) largest = std::max(largest, s.at(row, j));
  for (int64_t j = 0; j < count; ++j) sum += std::exp(s.at(row, j) - largest);
  for (int64_t j = 0; j < s.columns; ++j) s.at(row, j) = j < count ? std::exp(s.at(row, j) - largest) / sum : 0;
}

double score_scale(const Matrix& q) { return 1 / std::sqrt(static_cast<double>(q.columns)); }

// What one head reads of queries, keys and values that have all heads side by side.
struct HeadInputs {
  int64_t query_column, kv_column;
  Matrix q, k, v;
};
HeadInputs inputs_of(const Matrix& q, const Matrix& k, const Matrix& v, HeadCounts counts, int64_t head) {
  const int64_t width = q.columns / counts.heads, group = counts.heads / counts.kv_heads;
  const int64_t query_column = head * width, kv_column = head / group * width;
  return {query_column, kv_column, columns_of(q, query_column, width), columns_of(k, kv_column, width),
          columns_of(v, kv_column, width)};
}

}  // namespace

Head scaled_dot_product_attention(const Matrix& q, const Matrix& k, const Matrix& v, Mask mask) {
  Matrix scores = product(q, transposed(k));
  for (double& s : scores.elements) s *= score_scale(q);
  for (int64_t i = 0; i < scores.rows; ++i) softmax_row(scores, i, mask == Mask::kCausal ? i + 1 : scores.columns);
  Matrix output = product(scores, v);
  return {std::move(scores), std::move(output)};
}

// o = p v:  dv = p^T do, dp = do v^T.  p = softmax(s):  ds_j = p_j (dp_j - sum_l p_l dp_l), row by row.
// s = q k^T / sqrt(d_k):  dq = ds k / sqrt(d_k), dk = ds^T q / sqrt(d_k).
InputGradients scaled_dot_product_attention_gradients(const Matrix& q, const Matrix& k, const Matrix& v,
                                                      const Head& head, const Matrix& d_output) {
  const Matrix& p = head.probabilities;
  const Matrix dp = product(d_output, transposed(v));
  Matrix ds{p.rows, p.columns};
  for (int64_t i = 0; i < p.rows; ++i) {
    double mean = 0;
    for (int64_t j = 0; j < p.columns; ++j) mean += p.at(i, j) * dp.at(i, j);
    for (int64_t j = 0; j < p.columns; ++j) ds.at(i, j) = score_scale(q) * p.at(i, j) * (dp.at(i, j) - mean);
  }
  return {product(ds, k), product(transposed(ds), q), product(transposed(p), d_output)};
}

Matrix multi_head_attention(const Matrix& q, const Matrix& k, const Matrix& v, HeadCounts counts, Mask mask) {
  Matrix output{q.rows, q.columns};
  for (int64_t h = 0; h < counts.heads; ++h) {
    const HeadInputs in = inputs_of(q, k, v, counts, h);
    add_to_columns(scaled_dot_product_attention(in.q, in.k, in.v, mask).output, in.query_column, output);
  }
  return output;
}

// A head's gradients go where its inputs came from; queries that share keys add up.
InputGradients multi_head_attention_gradients(const Matrix& q, const Matrix& k, const Matrix& v, HeadCounts counts,
                                              Mask mask, const Matrix& d_output) {
  InputGradients all{{q.rows, q.columns}, {k.rows, k.columns}, {v.rows, v.columns}};
  for (int64_t h = 0; h < counts.heads; ++h) {
    const HeadInputs in = inputs_of(q, k, v, counts, h);
    const Head head = scaled_dot_product_attention(in.q, in.k, in.v, mask);
    const InputGradients d = scaled_dot_product_attention_gradients(
        in.q, in.k, in.v, head, columns_of(d_output, in.query_column, in.q.columns));
    add_to_columns(d.q, in.query_column, all.q);
    add_to_columns(d.k, in.kv_column, all.k);
    add_to_columns(d.v, in.kv_column, all.v);
  }
  return all;
}

Matrix attention_layer(const Matrix& x, const Projections& w, HeadCounts counts, Mask mask) {
  return product(multi_head_attention(product(x, w.w_q), product(x, w.w_k), product(x, w.w_v), counts, mask), w.w_o);
}

// y = a w:  dw = a^T dy, da = dy w^T.
Projections attention_layer_gradients(const Matrix& x, const Projections& w, HeadCounts counts, Mask mask,
                                      const Matrix& d_output) {
  const Matrix q = product(x, w.w_q), k = product(x, w.w_k), v = product(x, w.w_v);
  const Matrix heads = multi_head_attention(q, k, v, counts, mask);
  const InputGradients d = multi_head_attention_gradients(q, k, v, counts, mask, product(d_output, transposed(w.w_o)));
  const Matrix x_transposed = transposed(x);
  return {product(x_transposed, d.q), product(x_transposed, d.k), product(x_transposed, d.v),
          product(transposed(heads), d_output)};
}

}  // namespace transept::plain
