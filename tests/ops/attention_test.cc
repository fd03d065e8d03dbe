// Attention over fused projections of ragged batches, sequence by sequence against the reference in double.
#include "ops/attention.h"

#include <cmath>

#include "kernels/attention_ref.h"
#include "op_case.h"

namespace transept {
namespace {

struct Batch {
  int64_t heads, kv_heads, head_dim, window;
  BatchLayout layout;
  bool causal = true;
  float softcap = 0;
  bool bias = false, sinks = false;  // learned
  BatchLayout keys = {};             // cross-attention: those of a second input
  int64_t gap = 0;                   // columns that nobody reads, on both sides of queries, keys and values
  int64_t value_dim = 0;

  bool cross() const { return !keys.empty(); }
  const BatchLayout& key_layout() const { return cross() ? keys : layout; }
  static int64_t rows_of(const BatchLayout& l) { return l.back().first_row + l.back().rows; }
  int64_t rows() const { return rows_of(layout); }
  int64_t query_width() const { return heads * head_dim; }
  int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
  int64_t k_width() const { return kv_heads * head_dim; }
  int64_t v_width() const { return kv_heads * value_width(); }
  int64_t out_width() const { return heads * value_width(); }
  // Queries first, values before keys.
  int64_t q_column() const { return gap; }
  int64_t v_column() const { return (cross() ? 0 : query_width() + gap) + gap; }
  int64_t k_column() const { return v_column() + v_width() + gap; }
  int64_t kv_input_width() const { return k_column() + k_width() + gap; }
  int64_t q_input_width() const { return cross() ? query_width() + 2 * gap : kv_input_width(); }
  AttentionShape shape() const {
    return {.heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .value_dim = value_dim,
            .scale = 1.3f / std::sqrt(static_cast<float>(head_dim)),
            .causal = causal,
            .window = window,
            .softcap = softcap};
  }
  std::string name() const {
    return std::to_string(heads) + "/" + std::to_string(kv_heads) + " heads of " + std::to_string(head_dim) +
           ", window " + std::to_string(window) + ", " + std::to_string(layout.size()) + " sequences, " +
           std::to_string(rows()) + " rows" + (causal ? "" : ", bidirectional") + (softcap > 0 ? ", capped" : "") +
           (bias ? ", biased" : "") + (sinks ? ", sinks" : "") + (cross() ? ", cross" : "") + ", gap " +
           std::to_string(gap) + ", values of " + std::to_string(value_width());
  }
  // Distances from -200 or 0 to 300, in 5 buckets.
  static constexpr int64_t kBuckets = 5;
  int64_t first_distance() const { return causal ? 0 : -200; }
  int64_t distances() const { return 301 - first_distance(); }
  static int32_t bucket(int64_t d) { return static_cast<int32_t>(d * d % kBuckets); }
  // Where the table has each element of the parameter [buckets, heads], by what it is called with.
  template <class F>
  void for_table(const F& body) const {
    const int64_t group = heads / kv_heads;
    size_t at = 0;
    for (int64_t g = 0; g < kv_heads; ++g) {
      for (int64_t d = 0; d < distances(); ++d) {
        for (int64_t h = 0; h < group; ++h) body(at++, static_cast<size_t>(bucket(d) * heads + g * group + h));
      }
    }
  }
  ScoreBias score_bias(const Param& parameter) const {
    ScoreBias b;
    if (!bias) return b;
    std::vector<float> table(static_cast<size_t>(distances() * heads));
    for_table([&](size_t at, size_t from) { table[at] = parameter.value[from]; });
    b.table = std::make_shared<const std::vector<float>>(std::move(table));
    b.first = first_distance();
    b.distances = distances();
    b.parameter = parameter;
    for (int64_t d = 0; d < distances(); ++d) b.bucket.push_back(bucket(d));
    return b;
  }
};

// Columns [first, first + count) of some rows, packed.
Doubles columns(const Doubles& x, int64_t width, const SequenceRows& s, int64_t first, int64_t count) {
  Doubles y;
  for (int64_t r = s.first_row; r < s.first_row + s.rows; ++r) {
    const auto row = x.begin() + r * width;
    y.insert(y.end(), row + first, row + first + count);
  }
  return y;
}
void put_columns(const Doubles& y, int64_t width, const SequenceRows& s, int64_t first, int64_t count, Doubles& x) {
  for (int64_t r = 0; r < s.rows; ++r) {
    std::copy_n(y.begin() + r * count, count, x.begin() + (s.first_row + r) * width + first);
  }
}

ref::AttentionInput sequence_input(const Batch& b, const Values& v, size_t index) {
  const SequenceRows &s = b.layout[index], &t = b.key_layout()[index];
  const Doubles& kv = v.inputs.back();
  ref::AttentionInput in;
  in.heads = b.heads;
  in.kv_heads = b.kv_heads;
  in.head_dim = b.head_dim;
  in.scale = static_cast<double>(b.shape().scale);
  in.window = b.window;
  in.first_position = s.first_position;
  for (int64_t r = 0; r < t.rows; ++r) in.key_positions.push_back(t.first_position + r);
  in.q = columns(v.inputs[0], b.q_input_width(), s, b.q_column(), b.query_width());
  in.k = columns(kv, b.kv_input_width(), t, b.k_column(), b.k_width());
  in.v = columns(kv, b.kv_input_width(), t, b.v_column(), b.v_width());
  in.value_dim = b.value_dim;
  in.causal = b.causal;
  in.softcap = static_cast<double>(b.softcap);
  if (b.bias) {
    in.bias.resize(static_cast<size_t>(b.distances() * b.heads));
    in.bias_first = b.first_distance();
    b.for_table([&](size_t at, size_t from) { in.bias[at] = v.params[0][from]; });
  }
  if (b.sinks) in.sinks = v.params.back();
  return in;
}

OpCase attention_case(const Batch& b) {
  OpCase c;
  c.name = b.name();
  c.inputs = {{b.rows(), b.q_input_width()}};
  if (b.cross()) c.inputs.push_back({Batch::rows_of(b.keys), b.kv_input_width()});
  if (b.bias) c.params.push_back({Batch::kBuckets, b.heads});
  if (b.sinks) c.params.push_back({b.heads, 1});
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return attention(context, {inputs[0], b.q_column(), inputs.back(), b.k_column(), b.v_column()}, b.shape(),
                     b.score_bias(b.bias ? params[0] : Param()), b.sinks ? params.back() : Param(), b.layout,
                     b.key_layout());
  };
  c.forward = [=](const Values& v) {
    Doubles y(static_cast<size_t>(b.rows() * b.out_width()));
    for (size_t s = 0; s < b.layout.size(); ++s) {
      put_columns(ref::attention_forward(sequence_input(b, v, s)).out, b.out_width(), b.layout[s], 0, b.out_width(), y);
    }
    return y;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values d;
    for (const Doubles& x : v.inputs) d.inputs.emplace_back(x.size());
    for (const Doubles& x : v.params) d.params.emplace_back(x.size());
    for (size_t s = 0; s < b.layout.size(); ++s) {
      const ref::AttentionGradients g =
          ref::attention_backward(sequence_input(b, v, s), columns(dy, b.out_width(), b.layout[s], 0, b.out_width()));
      put_columns(g.dq, b.q_input_width(), b.layout[s], b.q_column(), b.query_width(), d.inputs[0]);
      Doubles& dkv = d.inputs.back();
      put_columns(g.dk, b.kv_input_width(), b.key_layout()[s], b.k_column(), b.k_width(), dkv);
      put_columns(g.dv, b.kv_input_width(), b.key_layout()[s], b.v_column(), b.v_width(), dkv);
      if (b.bias) b.for_table([&](size_t at, size_t to) { d.params[0][to] += g.d_bias[at]; });
      if (b.sinks) d.params.back() = d.params.back() + g.d_sinks;
    }
    return d;
  };
  return c;
}

const BatchLayout kOne{{0, 1, 0}}, kRagged{{0, 17, 0}, {17, 1, 0}, {18, 33, 0}}, kLater{{0, 5, 7}, {5, 8, 100}},
    kLong{{0, 257, 0}, {257, 43, 0}};

// Every option alone and all of them, over projections that are wider than what is read.
std::vector<Batch> option_batches(const BatchLayout& layout, const BatchLayout& keys) {
  return {
      {4, 2, 3, 0, layout, false},
      {4, 2, 3, 2, layout, false},
      {4, 2, 3, 0, layout, true, 1.5f},
      {4, 2, 3, 0, layout, true, 0, true},
      {4, 2, 3, 0, layout, true, 0, false, true},
      {4, 2, 3, 0, layout, true, 0, false, false, {}, 2},
      {4, 2, 3, 0, layout, false, 0, false, false, keys},
      {6, 2, 5, 0, layout, false, 1.5f, true, true, keys, 1},
      {6, 2, 5, 3, layout, true, 1.5f, true, true, {}, 1},
      {5, 1, 5, 3, layout, false, 1.5f, true, true, {}, 1},
      {4, 2, 3, 0, layout, true, 0, false, false, {}, 0, 5},
      {6, 2, 5, 3, layout, true, 1.5f, true, true, {}, 1, 2},
      {4, 4, 3, 0, layout, false, 0, false, false, keys, 1, 7},
  };
}

TEST(Attention, ReferenceGradientsMatchCentralDifferences) {
  for (const int64_t window : {0, 2}) {
    EXPECT_TRUE(reference_gradients_match(attention_case({4, 2, 3, window, {{0, 4, 0}, {4, 1, 0}, {5, 3, 6}}})));
  }
  for (const Batch& b : option_batches({{0, 4, 0}, {4, 1, 0}, {5, 3, 6}}, {{0, 2, 0}, {2, 5, 0}, {7, 3, 0}}))
    EXPECT_TRUE(reference_gradients_match(attention_case(b)));
}

TEST(Attention, EqualsTheReferenceWithEveryOption) {
  for (const Batch& b : option_batches(kRagged, {{0, 9, 0}, {9, 30, 0}, {39, 2, 0}})) check_op(attention_case(b));
  // Sequences without keys, and without queries.
  for (const Batch& b : option_batches({{0, 3, 0}, {3, 0, 0}, {3, 7, 0}}, {{0, 0, 0}, {0, 5, 0}, {5, 2, 0}}))
    check_op(attention_case(b));
}

TEST(Attention, GradientsComeThroughRecomputation) {
  const Batch b{6, 2, 5, 3, kRagged, true, 1.5f, true, true, {}, 1};
  OpCase c = attention_case(b);
  c.op = [op = c.op](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return recompute(context, inputs[0],
                     [op, params](const OpContext& again, const Var& x) { return op(again, {x}, params); });
  };
  check_op(c);
}

TEST(Attention, EqualsTheReferenceOverRaggedBatches) {
  for (const BatchLayout& layout : {kOne, kRagged, kLater}) {
    for (const int64_t window : {0, 1, 3}) {
      check_op(attention_case({4, 4, 8, window, layout}));
      check_op(attention_case({6, 2, 5, window, layout}));
      check_op(attention_case({4, 1, 16, window, layout}));
    }
  }
}

TEST(Attention, EqualsTheReferenceOverLongSequences) {
  for (const int64_t window : {0, 70}) check_op(attention_case({2, 1, 24, window, kLong}));
}

// Rows whose past lies in a cache, in chunks, see what they would see in one run.
TEST(Attention, CachedKeysStandForRowsOfTheSequence) {
  for (const bool options : {false, true}) {
    for (const int64_t window : {0, 4}) {
      Batch b{6, 2, 8, window, {{0, 30, 0}, {30, 20, 0}}};
      OpCase whole = attention_case(b);
      if (options) {
        b.softcap = 1.5f;
        b.bias = b.sinks = true;
        whole = attention_case(b);
      }
      const CaseData data = data_of(whole);
      const std::vector<float>& all = data.inputs[0];
      const int64_t width = b.q_input_width();
      std::vector<Param> params;
      for (size_t i = 0; i < data.params.size(); ++i)
        params.push_back({data.params[i].data(), nullptr, whole.params[i].rows, whole.params[i].width});
      for_each_instruction_set([&] {
        ThreadPool pool(2);
        Arena arena;
        const OpContext context{pool, arena, nullptr};
        // 13 and 1 rows are new; the rest is cached: 17 rows in two chunks, and 19 rows in one.
        const Var qkv = context.make(14, width);
        const auto row = [&](int64_t r) { return all.data() + r * width; };
        std::copy_n(row(17), 13 * width, qkv.value.data());
        std::copy_n(row(49), width, qkv.value.data() + 13 * width);
        const auto chunk = [&](int64_t first_row, int64_t rows, int64_t first_position) {
          return KvChunk{row(first_row) + b.k_column(), row(first_row) + b.v_column(), width, rows, first_position};
        };
        const std::vector<std::vector<KvChunk>> cached{{chunk(0, 10, 0), chunk(10, 7, 10)}, {chunk(30, 19, 0)}};
        const BatchLayout layout{{0, 13, 17}, {13, 1, 19}};
        const Var y =
            attention(context, {qkv, b.q_column(), qkv, b.k_column(), b.v_column()}, b.shape(),
                      b.score_bias(options ? params[0] : Param()), options ? params[1] : Param(), layout, layout,
                      [&](int64_t s) { return std::span<const KvChunk>(cached[static_cast<size_t>(s)]); });
        Doubles rows = columns(data.y, b.query_width(), {17, 13, 0}, 0, b.query_width());
        const Doubles last = columns(data.y, b.query_width(), {49, 1, 0}, 0, b.query_width());
        rows.insert(rows.end(), last.begin(), last.end());
        EXPECT_TRUE(
            close(std::vector<float>(y.value.data(), y.value.data() + y.value.size()), rows, tolerance::kKernel));
      });
    }
  }
}

// Cross-attention in decoding: the keys were projected once and lie in a cache, and there are no rows of keys at all.
TEST(Attention, EverythingMayBeCached) {
  const Batch b{6, 2, 8, 0, {{0, 3, 0}, {3, 1, 0}}, false, 0, false, true, {{0, 7, 0}, {7, 40, 0}}};
  const OpCase whole = attention_case(b);
  const CaseData data = data_of(whole);
  const float* kv = data.inputs[1].data();
  for_each_instruction_set([&] {
    ThreadPool pool(2);
    Arena arena;
    const OpContext context{pool, arena, nullptr};
    const Var q = context.make(b.rows(), b.q_input_width());
    std::copy(data.inputs[0].begin(), data.inputs[0].end(), q.value.data());
    const auto chunk = [&](int64_t first, int64_t rows, int64_t position) {
      const float* row = kv + first * b.kv_input_width();
      return KvChunk{row + b.k_column(), row + b.v_column(), b.kv_input_width(), rows, position};
    };
    const std::vector<std::vector<KvChunk>> cached{{chunk(0, 7, 0)}, {chunk(7, 25, 0), chunk(32, 15, 25)}};
    const Var y = attention(context, {q, 0, Var(), 0, 0}, b.shape(), {}, {data.params[0].data(), nullptr, b.heads, 1},
                            b.layout, {{0, 0, 7}, {0, 0, 40}},
                            [&](int64_t s) { return std::span<const KvChunk>(cached[static_cast<size_t>(s)]); });
    EXPECT_TRUE(close(std::vector<float>(y.value.data(), y.value.data() + y.value.size()), data.y, tolerance::kKernel));
  });
}

Var self_attention(const OpContext& context, const Var& qkv, const AttentionShape& shape, const BatchLayout& layout,
                   const CachedKeys& cached = {}) {
  const int64_t q = shape.heads * shape.head_dim, kv = shape.kv_heads * shape.head_dim;
  return attention(context, {qkv, 0, qkv, q, q + kv}, shape, {}, {}, layout, layout, cached);
}

TEST(AttentionDeath, ThereIsNoCacheWhereGradientsAreWanted) {
  ThreadPool pool(1);
  Arena arena;
  Tape tape;
  const OpContext context{pool, arena, &tape};
  const Var qkv = context.make(1, 12);
  std::fill_n(qkv.value.data(), 12, 1.f);
  EXPECT_DEATH(self_attention(context, qkv, {1, 1, 4}, {{0, 1, 0}}, [](int64_t) { return std::span<const KvChunk>(); }),
               "does not hold");
  EXPECT_DEATH(attention(context, {qkv, 0, Var(), 0, 0}, {1, 1, 4}, {}, {}, {{0, 1, 0}}, {{0, 0, 0}}), "does not hold");
}

TEST(AttentionDeath, ColumnsLieInTheirRowsAndApart) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const Var x = context.make(1, 12), other = context.make(1, 8);
  std::fill_n(x.value.data(), 12, 1.f);
  std::fill_n(other.value.data(), 8, 1.f);
  const BatchLayout one{{0, 1, 0}};
  Tape tape;
  const OpContext with_tape{pool, arena, &tape};
  const auto attend = [&](const Var& q, int64_t q_column, const Var& kv, int64_t k_column, int64_t v_column,
                          bool gradients = false) {
    return attention(gradients ? with_tape : context, {q, q_column, kv, k_column, v_column}, {1, 1, 4}, {}, {}, one,
                     one)
        .rows;
  };
  EXPECT_EQ(attend(x, 8, x, 0, 4), 1);
  EXPECT_EQ(attend(x, 2, other, 4, 0), 1);
  EXPECT_DEATH(attend(x, 9, other, 4, 0), "does not hold");
  EXPECT_DEATH(attend(x, 0, other, 5, 0), "does not hold");
  EXPECT_DEATH(attend(x, 0, other, 0, 5), "does not hold");
  EXPECT_EQ(attend(x, 0, other, 0, 3), 1);
  EXPECT_DEATH(attend(x, 0, other, 0, 3, true), "does not hold");
  EXPECT_DEATH(attend(x, 3, x, 4, 8, true), "does not hold");
  EXPECT_DEATH(attend(x, -1, x, 4, 8), "does not hold");
}

TEST(AttentionDeath, TheTableHoldsEveryVisiblePair) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const Var x = context.make(4, 3);
  std::fill_n(x.value.data(), 12, 1.f);
  const BatchLayout layout{{0, 4, 10}};
  const auto attend = [&](bool causal, int64_t window, int64_t first, int64_t distances, int64_t entries) {
    ScoreBias bias;
    bias.table = std::make_shared<const std::vector<float>>(static_cast<size_t>(entries), 1.f);
    bias.first = first;
    bias.distances = distances;
    const AttentionShape shape{.head_dim = 1, .causal = causal, .window = window};
    return attention(context, {x, 0, x, 1, 2}, shape, bias, {}, layout, layout).rows;
  };
  EXPECT_EQ(attend(true, 0, 0, 4, 4), 4);
  EXPECT_EQ(attend(true, 2, 0, 2, 2), 4);
  EXPECT_EQ(attend(false, 0, -3, 7, 7), 4);
  EXPECT_EQ(attend(false, 2, -1, 3, 3), 4);
  EXPECT_DEATH(attend(true, 0, 0, 3, 3), "does not hold");
  EXPECT_DEATH(attend(true, 0, 1, 4, 4), "does not hold");
  EXPECT_DEATH(attend(true, 0, 0, 4, 3), "does not hold");
  EXPECT_DEATH(attend(false, 0, -2, 7, 7), "does not hold");
  EXPECT_DEATH(attend(false, 2, 0, 3, 3), "does not hold");
}

TEST(AttentionDeath, EveryRowBelongsToOneSequence) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const Var qkv = context.make(4, 3);
  std::fill_n(qkv.value.data(), 12, 1.f);
  const AttentionShape shape{1, 1, 1};
  EXPECT_EQ(self_attention(context, qkv, shape, {{0, 3, 0}, {3, 1, 0}}).rows, 4);
  for (const BatchLayout& layout :
       {BatchLayout{{0, 3, 0}}, {{0, 3, 0}, {3, 2, 0}}, {{0, 1, 0}, {2, 2, 0}}, {{0, 3, 0}, {2, 2, 0}}}) {
    EXPECT_DEATH(self_attention(context, qkv, shape, layout), "does not hold");
  }
  EXPECT_DEATH(attention(context, {qkv, 0, qkv, 1, 2}, shape, {}, {}, {{0, 4, 0}}, {{0, 2, 0}, {2, 2, 0}}),
               "does not hold");
}

}  // namespace
}  // namespace transept
