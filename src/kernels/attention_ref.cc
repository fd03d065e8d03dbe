#include "kernels/attention_ref.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace transept::ref {
namespace {

int64_t rows_of(const AttentionInput& in) { return static_cast<int64_t>(in.q.size()) / (in.heads * in.head_dim); }

bool sees(const AttentionInput& in, int64_t row, int64_t key) {
  const int64_t distance = in.first_position + row - in.key_positions[static_cast<size_t>(key)];
  return (!in.causal || distance >= 0) && (in.window == 0 || std::abs(distance) < in.window);
}

const double* query(const AttentionInput& in, int64_t row, int64_t head) {
  return in.q.data() + (row * in.heads + head) * in.head_dim;
}

// Where the row of a key and query head begins, among rows of all keys' heads of `width`.
int64_t key_offset(const AttentionInput& in, int64_t key, int64_t head, int64_t width) {
  return (key * in.kv_heads + head / (in.heads / in.kv_heads)) * width;
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// The place in the table of a pair's bias.
size_t bias_at(const AttentionInput& in, int64_t row, int64_t key, int64_t head) {
  const int64_t group = in.heads / in.kv_heads, distances = static_cast<int64_t>(in.bias.size()) / in.heads;
  const int64_t distance = in.first_position + row - in.key_positions[static_cast<size_t>(key)] - in.bias_first;
  return static_cast<size_t>((head / group * distances + distance) * group + head % group);
}

}  // namespace

std::vector<double> attention_probabilities(const AttentionInput& in, int64_t row, int64_t head, double* lse,
                                            std::vector<double>* slopes) {
  const int64_t keys = static_cast<int64_t>(in.key_positions.size());
  std::vector<double> p(in.key_positions.size(), 0.0);
  const double sink = in.sinks.empty() ? -std::numeric_limits<double>::infinity() : in.sinks[static_cast<size_t>(head)];
  double max = sink;
  if (slopes) slopes->assign(p.size(), 1.0);
  for (int64_t j = 0; j < keys; ++j) {
    if (!sees(in, row, j)) continue;
    double s = in.scale * dot(query(in, row, head), in.k.data() + key_offset(in, j, head, in.head_dim), in.head_dim);
    if (in.softcap > 0) {
      s = in.softcap * std::tanh(s / in.softcap);
      if (slopes) (*slopes)[static_cast<size_t>(j)] = 1 - (s / in.softcap) * (s / in.softcap);
    }
    if (!in.bias.empty()) s += in.bias[bias_at(in, row, j, head)];
    p[static_cast<size_t>(j)] = s;
    max = std::max(max, s);
  }
  double sum = in.sinks.empty() ? 0 : std::exp(sink - max);
  for (int64_t j = 0; j < keys; ++j) {
    if (!sees(in, row, j)) continue;
    p[static_cast<size_t>(j)] = std::exp(p[static_cast<size_t>(j)] - max);
    sum += p[static_cast<size_t>(j)];
  }
  if (lse) *lse = max + std::log(sum);
  if (sum > 0) {
    for (double& x : p) x /= sum;
  }
  return p;
}

AttentionOutput attention_forward(const AttentionInput& in) {
  const int64_t rows = rows_of(in), keys = static_cast<int64_t>(in.key_positions.size());
  const int64_t value_width = in.value_width();
  AttentionOutput result{std::vector<double>(static_cast<size_t>(rows * in.heads * value_width), 0.0),
                         std::vector<double>(static_cast<size_t>(rows * in.heads))};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < in.heads; ++h) {
      const std::vector<double> p =
          attention_probabilities(in, r, h, &result.lse[static_cast<size_t>(r * in.heads + h)]);
      double* out = result.out.data() + (r * in.heads + h) * value_width;
      for (int64_t j = 0; j < keys; ++j) {
        const double* v = in.v.data() + key_offset(in, j, h, value_width);
        for (int64_t d = 0; d < value_width; ++d) out[d] += p[static_cast<size_t>(j)] * v[d];
      }
    }
  }
  return result;
}

// o_i = sum_j p_ij v_j and p_i = softmax(s_i):  dv_j += p_ij do_i;  dp_ij = do_i . v_j;  ds_ij = p_ij (dp_ij - sum_l
// p_il dp_il), which is the bias's gradient; a sink has dp = 0; s_ij = cap(scale q_i . k_j):  dq_i += scale cap' ds_ij
// k_j;  dk_j += scale cap' ds_ij q_i.
AttentionGradients attention_backward(const AttentionInput& in, const std::vector<double>& d_out) {
  const int64_t rows = rows_of(in), keys = static_cast<int64_t>(in.key_positions.size());
  const int64_t value_width = in.value_width();
  const auto zeros = [](const std::vector<double>& x) { return std::vector<double>(x.size(), 0.0); };
  AttentionGradients g{zeros(in.q), zeros(in.k), zeros(in.v), zeros(in.bias), zeros(in.sinks)};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < in.heads; ++h) {
      double lse;
      std::vector<double> slopes;
      const std::vector<double> p = attention_probabilities(in, r, h, &lse, &slopes);
      const double* go = d_out.data() + (r * in.heads + h) * value_width;
      std::vector<double> dp(p.size());
      double mean = 0;
      for (int64_t j = 0; j < keys; ++j) {
        dp[static_cast<size_t>(j)] = dot(go, in.v.data() + key_offset(in, j, h, value_width), value_width);
        mean += p[static_cast<size_t>(j)] * dp[static_cast<size_t>(j)];
      }
      if (!in.sinks.empty())
        g.d_sinks[static_cast<size_t>(h)] -= std::exp(in.sinks[static_cast<size_t>(h)] - lse) * mean;
      const double* q = query(in, r, h);
      double* dq = g.dq.data() + (r * in.heads + h) * in.head_dim;
      for (int64_t j = 0; j < keys; ++j) {
        if (!sees(in, r, j)) continue;
        const int64_t at = key_offset(in, j, h, in.head_dim), v_at = key_offset(in, j, h, value_width);
        const double probability = p[static_cast<size_t>(j)];
        const double ds = probability * (dp[static_cast<size_t>(j)] - mean);
        if (!in.bias.empty()) g.d_bias[bias_at(in, r, j, h)] += ds;
        const double d_product = in.scale * slopes[static_cast<size_t>(j)] * ds;
        for (int64_t d = 0; d < value_width; ++d) g.dv[static_cast<size_t>(v_at + d)] += probability * go[d];
        for (int64_t d = 0; d < in.head_dim; ++d) {
          dq[d] += d_product * in.k[static_cast<size_t>(at + d)];
          g.dk[static_cast<size_t>(at + d)] += d_product * q[d];
        }
      }
    }
  }
  return g;
}

}  // namespace transept::ref
