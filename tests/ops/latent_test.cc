// Latent attention's products by head against plain sums in double, and the absorbed form against the expanded one.
#include "ops/latent.h"

#include <cmath>

#include "op_case.h"
#include "ops/attention.h"

namespace transept {
namespace {

std::string name_of(int64_t rows, const LatentHeads& h) {
  return std::to_string(rows) + " records of " + std::to_string(h.rank) + " + " + std::to_string(h.rope) + ", " +
         std::to_string(h.heads) + " heads of " + std::to_string(h.nope) + " and " + std::to_string(h.value);
}

// Calls f(element of the expanded row, element of the record, index in the weight) for each product of an expanded row,
// and copy(element of the expanded row, element of the record) for each copy.
template <class F, class G>
void for_products(const LatentHeads& h, const F& f, const G& copy) {
  for (int64_t head = 0; head < h.heads; ++head) {
    for (int64_t i = 0; i < h.nope + h.value; ++i) {
      const int64_t to = i < h.nope ? head * h.key() + i : h.keys() + head * h.value + i - h.nope;
      for (int64_t r = 0; r < h.rank; ++r) f(to, r, (head * (h.nope + h.value) + i) * h.rank + r);
    }
    for (int64_t i = 0; i < h.rope; ++i) copy(head * h.key() + h.nope + i, h.rank + i);
  }
}

OpCase expand_case(int64_t rows, const LatentHeads& h) {
  const int64_t width = h.keys() + h.values(), record = h.record();
  const auto at = [](int64_t row, int64_t stride, int64_t i) { return static_cast<size_t>(row * stride + i); };
  OpCase c;
  c.name = name_of(rows, h);
  c.inputs = {{rows, record}};
  c.params = {{h.heads * (h.nope + h.value), h.rank, 0.3f}};
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return expand_records(context, inputs[0], params[0], h);
  };
  c.forward = [=](const Values& v) {
    Doubles y(static_cast<size_t>(rows * width));
    for (int64_t n = 0; n < rows; ++n) {
      for_products(
          h,
          [&](int64_t to, int64_t from, int64_t w) {
            y[at(n, width, to)] += v.inputs[0][at(n, record, from)] * v.params[0][static_cast<size_t>(w)];
          },
          [&](int64_t to, int64_t from) { y[at(n, width, to)] = v.inputs[0][at(n, record, from)]; });
    }
    return y;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values d{{Doubles(v.inputs[0].size())}, {Doubles(v.params[0].size())}};
    for (int64_t n = 0; n < rows; ++n) {
      for_products(
          h,
          [&](int64_t to, int64_t from, int64_t w) {
            d.inputs[0][at(n, record, from)] += dy[at(n, width, to)] * v.params[0][static_cast<size_t>(w)];
            d.params[0][static_cast<size_t>(w)] += dy[at(n, width, to)] * v.inputs[0][at(n, record, from)];
          },
          [&](int64_t to, int64_t from) { d.inputs[0][at(n, record, from)] += dy[at(n, width, to)]; });
    }
    return d;
  };
  return c;
}

TEST(ExpandRecords, ReferenceGradientsMatchCentralDifferences) {
  EXPECT_TRUE(reference_gradients_match(expand_case(3, {2, 4, 3, 2, 5})));
}

TEST(ExpandRecords, EqualsTheReference) {
  for (const int64_t rows : {1, 3, 40}) {
    check_op(expand_case(rows, {1, 1, 1, 1, 1}));
    check_op(expand_case(rows, {2, 4, 3, 2, 5}));
    check_op(expand_case(rows, {3, 33, 16, 8, 7}));
  }
  check_op(expand_case(300, {2, 20, 8, 4, 8}));  // several pieces of rows, and of the latent
  check_op(expand_case(20, {2, 300, 8, 4, 8}));
}

// Scores of the absorbed queries against the records are those of the queries against expanded keys, and what follows
// is the same, in chunks of a cache too.
TEST(AbsorbedLatents, GiveWhatExpandedOnesGive) {
  const LatentHeads h{3, 12, 6, 4, 5};
  constexpr int64_t kRows = 40, kNew = 3;
  const std::vector<float> records = random_floats(kRows * h.record(), 1), queries = random_floats(kNew * h.keys(), 2),
                           weights = random_floats(h.heads * (h.nope + h.value) * h.rank, 3, 0.4f);
  const Param weight{weights.data(), nullptr, h.heads * (h.nope + h.value), h.rank};
  for_each_instruction_set([&] {
    ThreadPool pool(2);
    Arena arena;
    const OpContext context{pool, arena, nullptr};
    const auto filled = [&](const std::vector<float>& x, int64_t width) {
      const Var v = context.make(static_cast<int64_t>(x.size()) / width, width);
      std::copy(x.begin(), x.end(), v.value.data());
      return v;
    };
    const Var q = filled(queries, h.keys());
    const BatchLayout layout{{0, kNew, kRows - kNew}}, all{{0, kRows, 0}};
    const AttentionShape expanded{
        .heads = h.heads, .kv_heads = h.heads, .head_dim = h.key(), .value_dim = h.value, .scale = 0.4f};
    const Var kv = expand_records(context, filled(records, h.record()), weight, h);
    const Var right = attention(context, {q, 0, kv, 0, h.keys()}, expanded, {}, {}, layout, all);

    AttentionShape absorbed = expanded;
    absorbed.kv_heads = 1;
    absorbed.head_dim = h.record();
    absorbed.value_dim = h.rank;
    const float* const first = records.data();
    const std::vector<KvChunk> cached{{first, first, h.record(), 20, 0},
                                      {first + 20 * h.record(), first + 20 * h.record(), h.record(), 17, 20}};
    const Var fresh = filled({records.end() - kNew * h.record(), records.end()}, h.record());
    const Var sums = attention(context, {absorb_queries(context, q, weight, h), 0, fresh, 0, 0}, absorbed, {}, {},
                               layout, layout, [&](int64_t) { return std::span<const KvChunk>(cached); });
    const Var out = values_of_latents(context, sums, weight, h);
    const auto span = [](const Var& v) {
      return std::span<const float>(v.value.data(), static_cast<size_t>(v.rows * v.width));
    };
    EXPECT_TRUE(close(span(out), span(right), tolerance::kKernel));
    std::vector<float> wrong = weights;
    wrong[7] += 1;
    const Var other = values_of_latents(context, sums, {wrong.data(), nullptr, weight.out, weight.in}, h);
    const Var moved = attention(
        context, {absorb_queries(context, q, {wrong.data(), nullptr, weight.out, weight.in}, h), 0, fresh, 0, 0},
        absorbed, {}, {}, layout, layout, [&](int64_t) { return std::span<const KvChunk>(cached); });
    EXPECT_TRUE(close(span(other), span(right), tolerance::kKernel)) << "the weight of a key is none of values";
    EXPECT_FALSE(close(span(moved), span(sums), tolerance::kKernel));
  });
}

}  // namespace
}  // namespace transept
