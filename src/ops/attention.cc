#include "ops/attention.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace transept {
namespace {

// What forward and backward both need, with shared ownership of it.
struct Operands {
  Buffer q, kv;
  int64_t q_width, kv_width, q_column, k_column, v_column;
  AttentionShape shape;  // with the pointers of bias and sinks
  ScoreBias bias;
  Param sinks;
  BatchLayout queries, keys;

  int64_t query_width() const { return shape.heads * shape.head_dim; }
  int64_t key_width() const { return shape.kv_heads * shape.head_dim; }
  int64_t value_width() const { return shape.kv_heads * shape.value_width(); }
  int64_t out_width() const { return shape.heads * shape.value_width(); }
};

int64_t rows_of(const BatchLayout& layout) {
  int64_t covered = 0;  // rows of no sequence would be left as they are, in the result and in the gradient
  for (const SequenceRows& s : layout) {
    TRANSEPT_CHECK(s.first_row == covered && s.rows >= 0);
    covered += s.rows;
  }
  return covered;
}

bool apart(int64_t a, int64_t a_width, int64_t b, int64_t b_width) { return a + a_width <= b || b + b_width <= a; }

void check_columns(const AttentionInputs& in, const Operands& o, bool one, bool gradients) {
  TRANSEPT_CHECK(in.q_column >= 0 && in.q_column + o.query_width() <= in.q.width);
  if (in.kv.rows == 0) return;
  TRANSEPT_CHECK(in.k_column >= 0 && in.k_column + o.key_width() <= in.kv.width);
  TRANSEPT_CHECK(in.v_column >= 0 && in.v_column + o.value_width() <= in.kv.width);
  if (!gradients) return;
  TRANSEPT_CHECK(apart(in.k_column, o.key_width(), in.v_column, o.value_width()));
  TRANSEPT_CHECK(!one || (apart(in.q_column, o.query_width(), in.k_column, o.key_width()) &&
                          apart(in.q_column, o.query_width(), in.v_column, o.value_width())));
}

void check_bias(const Operands& o) {
  const ScoreBias& bias = o.bias;
  if (!bias) return;
  TRANSEPT_CHECK(static_cast<int64_t>(bias.table->size()) == bias.distances * o.shape.heads);
  if (!bias.parameter) return;
  TRANSEPT_CHECK(bias.parameter.in == o.shape.heads && static_cast<int64_t>(bias.bucket.size()) == bias.distances);
  for (const int32_t b : bias.bucket) TRANSEPT_CHECK(b >= 0 && b < bias.parameter.out);
}

// Every pair of a query and a key that it may see lies in the table.
void check_distances(const Operands& o, const std::vector<AttentionSequence>& batch) {
  if (!o.bias) return;
  const AttentionShape& shape = o.shape;
  for (const AttentionSequence& s : batch) {
    for (const KvChunk& keys : s.keys) {
      if (s.rows == 0 || keys.rows == 0) continue;
      int64_t least = s.first_position - (keys.first_position + keys.rows - 1);
      int64_t most = s.first_position + s.rows - 1 - keys.first_position;
      if (shape.window > 0) {
        least = std::max(least, 1 - shape.window);
        most = std::min(most, shape.window - 1);
      }
      if (shape.causal) least = std::max<int64_t>(least, 0);
      TRANSEPT_CHECK(least > most || (least >= o.bias.first && most - o.bias.first < o.bias.distances));
    }
  }
}

// The sequences of a batch with the keys that each sees; `chunks` owns the chunk lists.
std::vector<AttentionSequence> sequences_of(const Operands& o, float* out, float* lse, const CachedKeys& cached,
                                            std::vector<std::vector<KvChunk>>& chunks) {
  chunks.resize(o.queries.size());
  std::vector<AttentionSequence> batch;
  for (size_t s = 0; s < o.queries.size(); ++s) {
    const SequenceRows &rows = o.queries[s], &keys = o.keys[s];
    if (cached) {
      const auto before = cached(static_cast<int64_t>(s));
      chunks[s].assign(before.begin(), before.end());
    }
    if (o.kv) {
      const float* row = o.kv.data() + keys.first_row * o.kv_width;
      chunks[s].push_back({row + o.k_column, row + o.v_column, o.kv_width, keys.rows, keys.first_position});
    }
    batch.push_back({o.q.data() + rows.first_row * o.q_width + o.q_column, o.q_width, rows.rows, rows.first_position,
                     chunks[s], out + rows.first_row * o.out_width(), o.out_width(),
                     lse ? lse + rows.first_row * o.shape.heads : nullptr});
  }
  return batch;
}

// The gradients of each sequence's table, [sequences, kv_heads, distances, group], go to the buckets of their
// distances, in this order whatever the threads.
void add_bias_gradient(const Operands& o, const float* d_bias) {
  const int64_t heads = o.shape.heads, group = heads / o.shape.kv_heads, distances = o.bias.distances;
  const Param& parameter = o.bias.parameter;
  std::vector<double> sums(static_cast<size_t>(parameter.out * heads));
  for (size_t s = 0; s < o.queries.size(); ++s) {
    for (int64_t g = 0; g < o.shape.kv_heads; ++g) {
      for (int64_t d = 0; d < distances; ++d, d_bias += group) {
        double* sum = sums.data() + o.bias.bucket[static_cast<size_t>(d)] * heads + g * group;
        for (int64_t h = 0; h < group; ++h) sum[h] += static_cast<double>(d_bias[h]);
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) parameter.gradient[i] += static_cast<float>(sums[i]);
}

void add_sinks_gradient(const Operands& o, const float* d_sinks) {
  for (int64_t h = 0; h < o.shape.heads; ++h) {
    double sum = 0;
    for (size_t s = 0; s < o.queries.size(); ++s)
      sum += static_cast<double>(d_sinks[static_cast<int64_t>(s) * o.shape.heads + h]);
    o.sinks.gradient[h] += static_cast<float>(sum);
  }
}

}  // namespace

Var attention(const OpContext& context, const AttentionInputs& in, const AttentionShape& shape, const ScoreBias& bias,
              const Param& sinks, const BatchLayout& queries, const BatchLayout& keys, const CachedKeys& cached) {
  TRANSEPT_CHECK(!shape.bias && !shape.sinks && !(context.tape && (cached || in.kv.rows == 0)));
  TRANSEPT_CHECK(queries.size() == keys.size() && rows_of(queries) == in.q.rows && rows_of(keys) == in.kv.rows);
  TRANSEPT_CHECK(!sinks || sinks.out * sinks.in == shape.heads);
  Operands o{in.q.value,  in.kv.rows > 0 ? in.kv.value : Buffer(),
             in.q.width,  in.kv.width,
             in.q_column, in.k_column,
             in.v_column, shape,
             bias,        sinks,
             queries,     keys};
  const bool one = in.q.value.data() == in.kv.value.data() && in.q.gradient == in.kv.gradient;
  check_columns(in, o, one, context.tape != nullptr);
  check_bias(o);
  if (bias) {
    o.shape.bias = o.bias.table->data();
    o.shape.bias_first = bias.first;
    o.shape.bias_distances = bias.distances;
  }
  o.shape.sinks = sinks.value;

  const Var out = context.make(in.q.rows, o.out_width());
  const bool trains_bias = bias && bias.parameter.gradient, trains_sinks = sinks && sinks.gradient;
  const bool flows_back = context.tape && (in.q.gradient || in.kv.gradient || trains_bias || trains_sinks);
  const Buffer lse = flows_back ? Buffer(context.arena, in.q.rows * shape.heads) : Buffer();
  {
    std::vector<std::vector<KvChunk>> chunks;
    const auto batch = sequences_of(o, out.value.data(), lse.data(), cached, chunks);
    check_distances(o, batch);
    const Buffer workspace(context.arena, context.pool.threads() * attention_forward_workspace(o.shape));
    attention_forward(context.pool, o.shape, batch, workspace.data());
  }
  if (!flows_back) return out;

  context.tape->record([context, o = std::move(o), one, trains_bias, trains_sinks, q_rows = in.q.rows,
                        kv_rows = in.kv.rows, q_slot = in.q.gradient, kv_slot = in.kv.gradient, out = out.value,
                        slot = out.gradient, lse] {
    if (!slot->buffer) return;
    std::vector<std::vector<KvChunk>> chunks;
    const auto batch = sequences_of(o, out.data(), lse.data(), {}, chunks);
    // The kernel overwrites; what another consumer has left is added to it afterwards.
    const auto blank = [&](int64_t rows, int64_t width, int64_t read) {
      Buffer buffer(context.arena, rows * width);
      if (read < width) std::fill_n(buffer.data(), buffer.size(), 0.f);
      return buffer;
    };
    const int64_t q_read = o.query_width(), kv_read = o.key_width() + o.value_width();
    Buffer dq = blank(q_rows, o.q_width, one ? q_read + kv_read : q_read);
    Buffer dkv = one ? dq : blank(kv_rows, o.kv_width, kv_read);
    const int64_t sequences = static_cast<int64_t>(batch.size()), table = o.bias.distances * o.shape.heads;
    const Buffer d_bias = trains_bias ? Buffer(context.arena, sequences * table) : Buffer();
    const Buffer d_sinks = trains_sinks ? Buffer(context.arena, sequences * o.shape.heads) : Buffer();
    std::vector<AttentionGradient> gradients;
    int64_t most_keys = 1;
    for (int64_t s = 0; s < sequences; ++s) {
      const SequenceRows &rows = o.queries[static_cast<size_t>(s)], &kv = o.keys[static_cast<size_t>(s)];
      float* const dkv_row = dkv.data() + kv.first_row * o.kv_width;
      gradients.push_back({batch[static_cast<size_t>(s)], slot->buffer.data() + rows.first_row * o.out_width(),
                           dq.data() + rows.first_row * o.q_width + o.q_column, dkv_row + o.k_column,
                           dkv_row + o.v_column, d_bias ? d_bias.data() + s * table : nullptr,
                           d_sinks ? d_sinks.data() + s * o.shape.heads : nullptr});
      most_keys = std::max(most_keys, kv.rows);
    }
    {
      const Buffer workspace(context.arena, context.pool.threads() * attention_backward_workspace(o.shape, most_keys));
      attention_backward(context.pool, o.shape, gradients, workspace.data());
    }
    if (trains_bias) add_bias_gradient(o, d_bias.data());
    if (trains_sinks) add_sinks_gradient(o, d_sinks.data());
    if (q_slot) add_gradient(context.pool, *q_slot, std::move(dq));
    if (kv_slot && !one) add_gradient(context.pool, *kv_slot, std::move(dkv));
    slot->buffer.reset();
  });
  return out;
}

}  // namespace transept
