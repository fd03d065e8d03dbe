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
  int64_t column = 0;
  bool interleaved = false;
  double amplitude = 1;

  int64_t rows() const { return layout.back().first_row + layout.back().rows; }
  // Each sequence has frequencies of its own.
  double angle(size_t sequence, int64_t position, int64_t pair) const {
    return static_cast<double>(position) *
           std::pow(100.0 + static_cast<double>(sequence), -static_cast<double>(pair) / static_cast<double>(pairs));
  }
};

OpCase rope_case(const Rotation& s) {
  std::vector<std::shared_ptr<const RotationTable>> tables;
  Doubles angles;
  for (size_t q = 0; q < s.layout.size(); ++q) {
    auto table = std::make_shared<RotationTable>();
    table->pairs = s.pairs;
    table->interleaved = s.interleaved;
    table->positions = s.layout[q].first_position + s.layout[q].rows;
    for (int64_t p = 0; p < table->positions; ++p) {
      for (int64_t i = 0; i < s.pairs; ++i) {
        const double angle = s.angle(q, p, i);
        table->cos.push_back(static_cast<float>(s.amplitude * std::cos(angle)));
        table->sin.push_back(static_cast<float>(s.amplitude * std::sin(angle)));
        if (p >= s.layout[q].first_position) angles.push_back(angle);
      }
    }
    tables.push_back(std::move(table));
  }
  // The reference turns the heads at the start of rows: those that come after `column`.
  const auto turned = [s, angles](const Doubles& x, const auto& f) {
    const size_t width = static_cast<size_t>(s.width), column = static_cast<size_t>(s.column), kept = width - column;
    Doubles heads;
    for (size_t i = 0; i < x.size(); ++i) {
      if (i % width >= column) heads.push_back(x[i]);
    }
    const ref::RopeShape shape{static_cast<int64_t>(kept),
                               s.heads,
                               s.head_dim,
                               2 * s.pairs,
                               s.interleaved ? RopePairing::kInterleaved : RopePairing::kHalfSplit,
                               s.amplitude};
    heads = f(shape, heads, angles);
    Doubles y = x;
    for (size_t i = 0; i < x.size(); ++i) {
      if (i % width >= column) y[i] = heads[i / width * kept + i % width - column];
    }
    return y;
  };
  OpCase c;
  c.name = std::to_string(s.rows()) + " x " + std::to_string(s.width) + ", " + std::to_string(s.heads) + " heads of " +
           std::to_string(s.head_dim) + " at " + std::to_string(s.column);
  c.inputs = {{s.rows(), s.width}};
  c.in_place = true;
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>&) {
    rotate_in_place(context, inputs[0], s.column, s.layout, s.heads, s.head_dim, tables);
    return inputs[0];
  };
  c.forward = [=](const Values& v) { return turned(v.inputs[0], ref::rope); };
  c.backward = [=](const Values&, const Doubles& dy) { return Values{{turned(dy, ref::rope_backward)}, {}}; };
  return c;
}

TEST(Rope, ReferenceGradientsMatchCentralDifferences) {
  EXPECT_TRUE(reference_gradients_match(rope_case({14, 2, 6, 2, {{0, 3, 0}, {3, 1, 9}}})));
  EXPECT_TRUE(reference_gradients_match(rope_case({14, 2, 6, 2, {{0, 3, 0}, {3, 1, 9}}, 1, true, 1.25})));
}

TEST(Rope, EqualsTheReferenceOverRaggedBatches) {
  // All heads and some, whole heads and their first half, one sequence and several from other positions than 0.
  check_op(rope_case({48, 4, 8, 4, {{0, 17, 0}, {17, 1, 0}, {18, 33, 0}}}));
  check_op(rope_case({42, 5, 6, 2, {{0, 5, 12}, {5, 8, 3}}}));
  check_op(rope_case({8, 1, 8, 4, {{0, 1, 40}}}));
  check_op(rope_case({520, 3, 64, 32, {{0, 257, 0}, {257, 43, 100}}}));
  check_op(rope_case({1030, 8, 128, 64, {{0, 300, 1}}}));
  // From a column on; neighbours as pairs; an amplitude.
  check_op(rope_case({48, 4, 8, 4, {{0, 17, 0}, {17, 1, 0}, {18, 33, 0}}, 16}));
  check_op(rope_case({42, 5, 6, 2, {{0, 5, 12}, {5, 8, 3}}, 12, true, 1.25}));
  check_op(rope_case({520, 3, 64, 32, {{0, 257, 0}, {257, 43, 100}}, 7, true}));
  check_op(rope_case({32, 4, 8, 2, {{0, 17, 0}, {17, 1, 0}}, 4}));  // the end of each head turns
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
    auto table = std::make_shared<RotationTable>(RotationTable{{1.f}, {0.f}, 1, 1, false});
    alive = table;
    rotate_in_place(context, x, 0, {{0, 1, 0}}, 1, 2, {{std::move(table)}});
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
  const auto table = std::make_shared<RotationTable>(RotationTable{{1.f, 1.f}, {0.f, 0.f}, 1, 2, false});
  const std::vector<std::shared_ptr<const RotationTable>> tables{table};
  rotate_in_place(context, x, 0, {{0, 2, 0}}, 1, 2, tables);
  EXPECT_DEATH(rotate_in_place(context, x, 0, {{0, 2, 1}}, 1, 2, tables), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, 0, {{1, 2, 0}}, 1, 2, tables), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, 0, {{0, 2, 0}}, 2, 2, tables), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, 0, {{0, 2, 0}}, 2, 1, tables), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, 1, {{0, 2, 0}}, 1, 2, tables), "does not hold");
  EXPECT_DEATH(rotate_in_place(context, x, 0, {{0, 1, 0}, {1, 1, 0}}, 1, 2, tables), "does not hold");
}

}  // namespace
}  // namespace transept
