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
  int64_t rows() const { return layout.back().first_row + layout.back().rows; }
  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t width() const { return query_width() + 2 * kv_width(); }
  AttentionShape shape() const {
    return {heads, kv_heads, head_dim, 1.3f / std::sqrt(static_cast<float>(head_dim)), window};
  }
  std::string name() const {
    return std::to_string(heads) + "/" + std::to_string(kv_heads) + " heads of " + std::to_string(head_dim) +
           ", window " + std::to_string(window) + ", " + std::to_string(layout.size()) + " sequences, " +
           std::to_string(rows()) + " rows";
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

ref::AttentionInput sequence_input(const Batch& b, const Doubles& qkv, const SequenceRows& s) {
  ref::AttentionInput in;
  in.heads = b.heads;
  in.kv_heads = b.kv_heads;
  in.head_dim = b.head_dim;
  in.scale = static_cast<double>(b.shape().scale);
  in.window = b.window;
  in.first_position = s.first_position;
  for (int64_t r = 0; r < s.rows; ++r) in.key_positions.push_back(s.first_position + r);
  in.q = columns(qkv, b.width(), s, 0, b.query_width());
  in.k = columns(qkv, b.width(), s, b.query_width(), b.kv_width());
  in.v = columns(qkv, b.width(), s, b.query_width() + b.kv_width(), b.kv_width());
  return in;
}

OpCase attention_case(const Batch& b) {
  OpCase c;
  c.name = b.name();
  c.inputs = {{b.rows(), b.width()}};
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>&) {
    return attention(context, inputs[0], b.shape(), b.layout);
  };
  c.forward = [=](const Values& v) {
    Doubles y(static_cast<size_t>(b.rows() * b.query_width()));
    for (const SequenceRows& s : b.layout) {
      put_columns(ref::attention_forward(sequence_input(b, v.inputs[0], s)).out, b.query_width(), s, 0, b.query_width(),
                  y);
    }
    return y;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Doubles dx(v.inputs[0].size());
    for (const SequenceRows& s : b.layout) {
      const ref::AttentionGradients g = ref::attention_backward(sequence_input(b, v.inputs[0], s),
                                                                columns(dy, b.query_width(), s, 0, b.query_width()));
      put_columns(g.dq, b.width(), s, 0, b.query_width(), dx);
      put_columns(g.dk, b.width(), s, b.query_width(), b.kv_width(), dx);
      put_columns(g.dv, b.width(), s, b.query_width() + b.kv_width(), b.kv_width(), dx);
    }
    return Values{{dx}, {}};
  };
  return c;
}

const BatchLayout kOne{{0, 1, 0}}, kRagged{{0, 17, 0}, {17, 1, 0}, {18, 33, 0}}, kLater{{0, 5, 7}, {5, 8, 100}},
    kLong{{0, 257, 0}, {257, 43, 0}};

TEST(Attention, ReferenceGradientsMatchCentralDifferences) {
  for (const int64_t window : {0, 2}) {
    EXPECT_TRUE(reference_gradients_match(attention_case({4, 2, 3, window, {{0, 4, 0}, {4, 1, 0}, {5, 3, 6}}})));
  }
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
  for (const int64_t window : {0, 4}) {
    const Batch b{6, 2, 8, window, {{0, 30, 0}, {30, 20, 0}}};
    const std::vector<float> all = random_floats(b.rows() * b.width(), 1);
    const OpCase whole = attention_case(b);
    const Doubles expected = whole.forward({{as_doubles(all)}, {}});
    for_each_instruction_set([&] {
      ThreadPool pool(2);
      Arena arena;
      const OpContext context{pool, arena, nullptr};
      // 13 and 1 rows are new; the rest is cached: 17 rows in two chunks, and 19 rows in one.
      const Var qkv = context.make(14, b.width());
      const auto row = [&](int64_t r) { return all.data() + r * b.width(); };
      std::copy_n(row(17), 13 * b.width(), qkv.value.data());
      std::copy_n(row(49), b.width(), qkv.value.data() + 13 * b.width());
      const auto chunk = [&](int64_t first_row, int64_t rows, int64_t first_position) {
        return KvChunk{row(first_row) + b.query_width(), row(first_row) + b.query_width() + b.kv_width(), b.width(),
                       rows, first_position};
      };
      const std::vector<std::vector<KvChunk>> cached{{chunk(0, 10, 0), chunk(10, 7, 10)}, {chunk(30, 19, 0)}};
      const Var y = attention(context, qkv, b.shape(), {{0, 13, 17}, {13, 1, 19}},
                              [&](int64_t s) { return std::span<const KvChunk>(cached[static_cast<size_t>(s)]); });
      Doubles rows = columns(expected, b.query_width(), {17, 13, 0}, 0, b.query_width());
      const Doubles last = columns(expected, b.query_width(), {49, 1, 0}, 0, b.query_width());
      rows.insert(rows.end(), last.begin(), last.end());
      EXPECT_TRUE(close(std::vector<float>(y.value.data(), y.value.data() + y.value.size()), rows, tolerance::kKernel));
    });
  }
}

TEST(AttentionDeath, ThereIsNoCacheWhereGradientsAreWanted) {
  ThreadPool pool(1);
  Arena arena;
  Tape tape;
  const OpContext context{pool, arena, &tape};
  const Var qkv = context.make(1, 12);
  std::fill_n(qkv.value.data(), 12, 1.f);
  EXPECT_DEATH(
      attention(context, qkv, {1, 1, 4, 1, 0}, {{0, 1, 0}}, [](int64_t) { return std::span<const KvChunk>(); }),
      "does not hold");
  EXPECT_DEATH(attention(context, qkv, {2, 1, 4, 1, 0}, {{0, 1, 0}}), "does not hold");
}

TEST(AttentionDeath, EveryRowBelongsToOneSequence) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const Var qkv = context.make(4, 3);
  std::fill_n(qkv.value.data(), 12, 1.f);
  const AttentionShape shape{1, 1, 1, 1, 0};
  EXPECT_EQ(attention(context, qkv, shape, {{0, 3, 0}, {3, 1, 0}}).rows, 4);
  for (const BatchLayout& layout :
       {BatchLayout{{0, 3, 0}}, {{0, 3, 0}, {3, 2, 0}}, {{0, 1, 0}, {2, 2, 0}}, {{0, 3, 0}, {2, 2, 0}}}) {
    EXPECT_DEATH(attention(context, qkv, shape, layout), "does not hold");
  }
}

}  // namespace
}  // namespace transept
