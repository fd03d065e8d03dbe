// Rotation in place over ragged batches against the reference in double.
#include "ops/rope.h"

#include <cmath>

#include "kernels/rope_ref.h"
#include "op_case.h"

namespace transept {
namespace {

struct Rotation {
  int64_t width, heads, head_dim, pairs;
  BatchLayout layout;
  int64_t rows() const { return layout.back().first_row + layout.back().rows; }
  double angle(int64_t position, int64_t pair) const {
    return static_cast<double>(position) * std::pow(100.0, -static_cast<double>(pair) / static_cast<double>(pairs));
  }
};

OpCase rope_case(const Rotation& s) {
  auto table = std::make_shared<RotationTable>();
  table->pairs = s.pairs;
  for (const SequenceRows& q : s.layout) table->positions = std::max(table->positions, q.first_position + q.rows);
  for (int64_t p = 0; p < table->positions; ++p) {
    for (int64_t i = 0; i < s.pairs; ++i) {
      table->cos.push_back(static_cast<float>(std::cos(s.angle(p, i))));
      table->sin.push_back(static_cast<float>(std::sin(s.angle(p, i))));
    }
  }
  Doubles angles;
  for (const SequenceRows& q : s.layout) {
    for (int64_t r = 0; r < q.rows; ++r) {
      for (int64_t i = 0; i < s.pairs; ++i) angles.push_back(s.angle(q.first_position + r, i));
    }
  }
  const ref::RopeShape shape{s.width, s.heads, s.head_dim, 2 * s.pairs};
  OpCase c;
  c.name = std::to_string(s.rows()) + " x " + std::to_string(s.width) + ", " + std::to_string(s.heads) + " heads of " +
           std::to_string(s.head_dim);
  c.inputs = {{s.rows(), s.width}};
  c.in_place = true;
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>&) {
    rotate_in_place(context, inputs[0], s.layout, s.heads, s.head_dim, table);
    return inputs[0];
  };
  c.forward = [=](const Values& v) { return ref::rope(shape, v.inputs[0], angles); };
  c.backward = [=](const Values&, const Doubles& dy) { return Values{{ref::rope_backward(shape, dy, angles)}, {}}; };
  return c;
}

TEST(Rope, ReferenceGradientsMatchCentralDifferences) {
  EXPECT_TRUE(reference_gradients_match(rope_case({14, 2, 6, 2, {{0, 3, 0}, {3, 1, 9}}})));
}

TEST(Rope, EqualsTheReferenceOverRaggedBatches) {
  // All heads and some, whole heads and their first half, one sequence and several from other positions than 0.
  check_op(rope_case({48, 4, 8, 4, {{0, 17, 0}, {17, 1, 0}, {18, 33, 0}}}));
  check_op(rope_case({42, 5, 6, 2, {{0, 5, 12}, {5, 8, 3}}}));
  check_op(rope_case({8, 1, 8, 4, {{0, 1, 40}}}));
  check_op(rope_case({520, 3, 64, 32, {{0, 257, 0}, {257, 43, 100}}}));
  check_op(rope_case({1030, 8, 128, 64, {{0, 300, 1}}}));
}

// The table that the layer above gives up must live until the backward pass is over.
TEST(Rope, KeepsItsTable) {
  ThreadPool pool(1);
  Arena arena;
  Tape tape;
  const OpContext context{pool, arena, &tape};
  std::weak_ptr<const RotationTable> alive;
  {
    const Var x = context.make(1, 2);
    std::fill_n(x.value.data(), 2, 1.f);
    auto table = std::make_shared<RotationTable>(RotationTable{{1.f}, {0.f}, 1, 1});
    alive = table;
    rotate_in_place(context, x, {{0, 1, 0}}, 1, 2, std::move(table));
  }
  EXPECT_FALSE(alive.expired());
  tape.backward();
  EXPECT_TRUE(alive.expired());
}

TEST(RopeDeath, RowsPositionsAndHeadsLieInTheirBounds) {
  ThreadPool pool(1);
  Arena arena;
  const OpContext context{pool, arena, nullptr};
  const Var x = context.make(2, 2);
  std::fill_n(x.value.data(), 4, 1.f);
  const auto table = std::make_shared<RotationTable>(RotationTable{{1.f, 1.f}, {0.f, 0.f}, 1, 2});
  rotate_in_place(context, x, {{0, 2, 0}}, 1, 2, table);
  EXPECT_DEATH(rotate_in_place(context, x, {{0, 2, 1}}, 1, 2, table), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, {{1, 2, 0}}, 1, 2, table), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, {{0, 2, 0}}, 2, 2, table), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, {{0, 2, 0}}, 2, 1, table), "does not hold");
}

}  // namespace
}  // namespace transept
