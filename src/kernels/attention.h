// Scaled dot-product attention with grouped keys and values, forward and backward, in tiles with an online softmax
// (arXiv:1706.03762 section 3.2.1; arXiv:2205.14135 algorithm 1; arXiv:2307.08691): the score matrix never exists as a
// whole, keys and values are read in place by stride, and query head h reads KV head h / (heads / kv_heads).
// Causal, bidirectional, windowed, cross-attention, soft-capping, biases by distance and sinks are one kernel.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace transept {

// What a query sees and how a score becomes a probability. With s = scale * (q . k), in this order:
//   s = softcap * tanh(s / softcap)   where softcap > 0 (arXiv:2408.00118 section 2),
//   s = s + bias by distance          where there is a table (arXiv:2108.12409; arXiv:1910.10683 section 2.1),
//   s = -inf                          where the key is hidden,
// and the softmax over the keys, with the head's sink in its denominator where there are sinks (gpt-oss).
struct AttentionShape {
  int64_t heads = 1;
  int64_t kv_heads = 1;   // divides heads
  int64_t head_dim = 1;   // elements of a head of queries and keys; any size
  int64_t value_dim = 0;  // elements of a head of values, and so of the result; 0: head_dim
  float scale = 1;
  bool causal = true;  // a query at position i sees keys at positions <= i; false: later ones too
  int64_t window = 0;  // W > 0: only keys at positions in (i - W, i + W); 0: no bound
  float softcap = 0;
  // Table [kv_heads, bias_distances, heads / kv_heads]: entry (g, d, h) is added to the score of query head
  // g * (heads / kv_heads) + h where query position - key position = bias_first + d. Every visible pair lies in it.
  const float* bias = nullptr;
  int64_t bias_first = 0;
  int64_t bias_distances = 0;
  const float* sinks = nullptr;  // [heads]: one more logit of the softmax, without a value; null: none

  int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
};

// A run of consecutive positions whose keys and values lie in memory at a fixed stride. Row r, KV head g starts at k +
// r * stride + g * head_dim, its value at v + r * stride + g * value_dim. Both are only read, and may be the same
// memory: latent attention takes a part of each key as its value.
struct KvChunk {
  const float* k = nullptr;
  const float* v = nullptr;
  int64_t stride = 0;  // floats between rows, the same for k and v
  int64_t rows = 0;
  int64_t first_position = 0;
};

// One sequence of a batch. Chunks are in order of position and do not overlap; a query row that sees no key gives zeros
// (lse = the head's sink; without sinks -inf).
struct AttentionSequence {
  const float* q = nullptr;  // row r, head h at q + r * q_stride + h * head_dim
  int64_t q_stride = 0;
  int64_t rows = 0;
  int64_t first_position = 0;  // position of query row 0
  std::span<const KvChunk> keys;
  float* out = nullptr;  // row r, head h at out + r * out_stride + h * value_dim
  int64_t out_stride = 0;
  float* lse = nullptr;  // [rows, heads]: log-sum-exp of the visible scores and the sink, for the backward pass
};

// Gradients of one sequence whose keys are one chunk (training: no cache), of any number of rows. All are overwritten.
struct AttentionGradient {
  AttentionSequence forward;     // as in the forward call: q, keys (one chunk), out and lse filled in
  const float* d_out = nullptr;  // laid out as out
  float* dq = nullptr;           // laid out as q, same stride
  float* dk = nullptr;           // row r, KV head g at dk + r * forward.keys[0].stride + g * head_dim
  float* dv = nullptr;           // row r, KV head g at dv + r * forward.keys[0].stride + g * value_dim
  float* d_bias = nullptr;       // as the table: the sum over the pairs at each distance; null: not wanted
  float* d_sinks = nullptr;      // [heads]; null: not wanted
};

// Floats of scratch that one worker needs; `workspace` below holds pool.threads() times as many.
int64_t attention_forward_workspace(const AttentionShape& shape);
int64_t attention_backward_workspace(const AttentionShape& shape, int64_t most_keys);  // of one sequence

void attention_forward(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionSequence> batch,
                       float* workspace);

// Scores of all heads that attention_forward computes for a sequence: those that are seen, and those around them that
// its tiles hold too.
int64_t attention_computed_scores(const AttentionShape& shape, const AttentionSequence& sequence);

// The probabilities are made again from q, k and lse. Work is split so that no two workers write the same gradient:
// results do not depend on the number of threads.
void attention_backward(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionGradient> batch,
                        float* workspace);

}  // namespace transept
