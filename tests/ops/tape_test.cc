// The tape itself; gradients of values with two consumers; recomputation; and errors planted into ops, which the checks
// of op_case.h must see.
#include "ops/tape.h"

#include "double_ops.h"
#include "kernels/attention_ref.h"
#include "kernels/norm_ref.h"
#include "op_case.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace transept {
namespace {

constexpr float kEps = 0.1f;

// y = x + dropout(x W^T + b): a value is the input and the residual of one op.
OpCase residual_of_itself(int64_t rows, int64_t width) {
  const DropoutMask mask = EndParts{.dropout = true}.mask(width);
  OpCase c;
  c.name = "residual of itself, " + std::to_string(rows) + " x " + std::to_string(width);
  c.inputs = {{rows, width}};
  c.params = {weight_of(width, width), {width, 1}};
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return linear(context, inputs[0], params[0], {.bias = params[1], .dropout = mask, .residual = &inputs[0]});
  };
  c.forward = [=](const Values& v) {
    Doubles y = times_transposed(v.inputs[0], v.params[0], width);
    add_to_rows(v.params[1], y);
    return v.inputs[0] + dropped(mask, y, width);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const Doubles g = dropped(mask, dy, width);
    return Values{{dy + times(g, v.params[0], width)}, {transposed_times(g, v.inputs[0], rows), column_sums(g, width)}};
  };
  return c;
}

// y = x + norm(x) W^T, the shape of a transformer's sublayer: x goes two ways.
OpCase sublayer(int64_t rows, int64_t width) {
  OpCase c;
  c.name = "sublayer, " + std::to_string(rows) + " x " + std::to_string(width);
  c.inputs = {{rows, width}};
  c.params = {{width, 1, 0.3f, 1.f}, weight_of(width, width)};
  c.op = [](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return linear(context, rms_norm(context, inputs[0], params[0], 0, kEps), params[1],
                  {.bias = {}, .dropout = {}, .residual = &inputs[0]});
  };
  c.forward = [=](const Values& v) {
    return v.inputs[0] + times_transposed(ref::rmsnorm(v.inputs[0], v.params[0], kEps), v.params[1], width);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const Doubles h = ref::rmsnorm(v.inputs[0], v.params[0], kEps);
    const ref::NormGradient g = ref::rmsnorm_backward(times(dy, v.params[1], width), v.inputs[0], v.params[0], kEps);
    return Values{{dy + g.dx}, {g.dweight, transposed_times(dy, h, rows)}};
  };
  return c;
}

// y = norm(x) W1^T + norm(x) W2^T W3^T, with one norm for both: a value inside goes two ways, and meets itself again in
// a sum.
OpCase fork_and_join(int64_t rows, int64_t width, int64_t inner) {
  OpCase c;
  c.name = "fork and join, " + std::to_string(rows) + " x " + std::to_string(width);
  c.inputs = {{rows, width}};
  c.params = {{width, 1, 0.3f, 1.f}, weight_of(width, width), weight_of(inner, width), weight_of(width, inner)};
  c.op = [](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    const Var h = layer_norm(context, inputs[0], params[0], {}, kEps);
    const Var one = linear(context, h, params[1]), two = linear(context, h, params[2]);
    return linear(context, two, params[3], {.bias = {}, .dropout = {}, .residual = &one});
  };
  c.forward = [=](const Values& v) {
    const Doubles h = ref::layernorm(v.inputs[0], v.params[0], {}, kEps);
    return times_transposed(h, v.params[1], width) +
           times_transposed(times_transposed(h, v.params[2], width), v.params[3], inner);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const Doubles h = ref::layernorm(v.inputs[0], v.params[0], {}, kEps);
    const Doubles d_two = times(dy, v.params[3], inner);
    const Doubles dh = times(dy, v.params[1], width) + times(d_two, v.params[2], width);
    const ref::NormGradient g = ref::layernorm_backward(dh, v.inputs[0], v.params[0], kEps);
    return Values{{g.dx},
                  {g.dweight, transposed_times(dy, h, rows), transposed_times(d_two, h, rows),
                   transposed_times(dy, times_transposed(h, v.params[2], width), rows)}};
  };
  return c;
}

// y = qkv + attention(qkv) W^T, one head: the gradient of qkv is there when that of the attention arrives.
OpCase attention_beside_another_consumer(int64_t rows, int64_t head_dim) {
  const int64_t width = 3 * head_dim;
  const auto input = [=](const Doubles& qkv) {
    ref::AttentionInput in;
    in.head_dim = head_dim;
    in.scale = 0.5;
    for (int64_t r = 0; r < rows; ++r) {
      in.key_positions.push_back(r);
      const auto row = qkv.begin() + r * width;
      in.q.insert(in.q.end(), row, row + head_dim);
      in.k.insert(in.k.end(), row + head_dim, row + 2 * head_dim);
      in.v.insert(in.v.end(), row + 2 * head_dim, row + width);
    }
    return in;
  };
  OpCase c;
  c.name = "attention beside another consumer";
  c.inputs = {{rows, width}};
  c.params = {weight_of(width, head_dim)};
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    const Var heads = attention(context, {inputs[0], 0, inputs[0], head_dim, 2 * head_dim},
                                {.head_dim = head_dim, .scale = 0.5f}, {}, {}, {{0, rows, 0}}, {{0, rows, 0}});
    return linear(context, heads, params[0], {.bias = {}, .dropout = {}, .residual = &inputs[0]});
  };
  c.forward = [=](const Values& v) {
    return v.inputs[0] + times_transposed(ref::attention_forward(input(v.inputs[0])).out, v.params[0], head_dim);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const ref::AttentionInput in = input(v.inputs[0]);
    const ref::AttentionGradients g = ref::attention_backward(in, times(dy, v.params[0], head_dim));
    Doubles dx;
    for (int64_t r = 0; r < rows; ++r) {
      for (const Doubles* part : {&g.dq, &g.dk, &g.dv})
        dx.insert(dx.end(), part->begin() + r * head_dim, part->begin() + (r + 1) * head_dim);
    }
    return Values{{dy + dx}, {transposed_times(dy, ref::attention_forward(in).out, rows)}};
  };
  return c;
}

TEST(Routing, ReferenceGradientsMatchCentralDifferences) {
  for (const OpCase& c :
       {residual_of_itself(3, 4), sublayer(3, 4), fork_and_join(3, 4, 2), attention_beside_another_consumer(4, 2)}) {
    EXPECT_TRUE(reference_gradients_match(c));
  }
}

TEST(Routing, AValueWithTwoConsumersGathersBothGradients) {
  for (const OpCase& c :
       {residual_of_itself(5, 48), residual_of_itself(257, 520), sublayer(5, 48), sublayer(257, 520),
        fork_and_join(5, 48, 17), fork_and_join(257, 33, 520), attention_beside_another_consumer(20, 8)}) {
    check_op(c);
  }
}

OpCase recomputed(OpCase c) {
  c.name += ", recomputed";
  c.op = [op = c.op](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return recompute(context, inputs[0],
                     [op, params](const OpContext& inner, const Var& x) { return op(inner, {x}, params); });
  };
  return c;
}

TEST(Recompute, ChangesNoBit) {
  for (const OpCase& kept :
       {residual_of_itself(5, 48), sublayer(257, 48), fork_and_join(5, 48, 17), recomputed(sublayer(5, 48))}) {
    const OpCase again = recomputed(kept);
    check_op(again);
    const CaseData data = data_of(kept);
    const Outcome a = run_op(kept, data, {}), b = run_op(again, data, {});
    EXPECT_TRUE(same_bits(a.y, b.y) && same_bits(a.inputs, b.inputs) && same_bits(a.params, b.params)) << kept.name;
  }
}

TEST(Recompute, PassesAValueThrough) {
  OpCase c = residual_of_itself(3, 4);
  c.params.clear();
  c.op = [](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>&) {
    return recompute(context, inputs[0], [](const OpContext&, const Var& x) { return x; });
  };
  c.forward = [](const Values& v) { return v.inputs[0]; };
  c.backward = [](const Values&, const Doubles& dy) { return Values{{dy}, {}}; };
  check_op(c);
}

TEST(Recompute, KeepsOnlyTheInput) {
  const int64_t rows = 64, width = 64;
  const std::vector<float> weight = random_floats(width * width, 1), ones(static_cast<size_t>(width), 1.f);
  const Param w{weight.data(), nullptr, width, width}, scale{ones.data(), nullptr, width, 1};
  size_t live[2];
  for (const bool again : {false, true}) {
    ThreadPool pool(1);
    Arena arena;
    Tape tape;
    const OpContext context{pool, arena, &tape};
    const Var x = context.make(rows, width);
    std::fill_n(x.value.data(), x.value.size(), 1.f);
    const auto body = [=](const OpContext& inner, const Var& in) {
      return linear(inner, linear(inner, rms_norm(inner, in, scale, 0, kEps), w), w);
    };
    const Var y = again ? recompute(context, x, body) : body(context, x);
    live[again] = arena.live_bytes();
  }
  const size_t value = static_cast<size_t>(rows * width) * sizeof(float);
  EXPECT_EQ(live[1], 2 * value) << "input and result";
  EXPECT_GT(live[0], 3 * value);
}

TEST(Tape, RunsFromTheEndAndLetsGoOfEachStep) {
  Arena arena;
  Tape tape;
  std::vector<int> order;
  std::vector<size_t> live;
  for (int i = 0; i < 3; ++i) {
    tape.record([&, i, held = Buffer(arena, 16)] {
      order.push_back(i);
      live.push_back(arena.live_bytes());
    });
  }
  tape.backward();
  EXPECT_EQ(order, (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(live, (std::vector<size_t>{192, 128, 64}));
  EXPECT_EQ(arena.live_bytes(), 0u);
  tape.backward();
  EXPECT_EQ(order.size(), 3u) << "a step runs once";
}

TEST(Tape, ADroppedRecordGivesItsMemoryBack) {
  ThreadPool pool(1);
  Arena arena;
  const OpCase c = fork_and_join(5, 8, 3);
  const CaseData data = data_of(c);
  {
    Tape tape;
    const OpContext context{pool, arena, &tape};
    const Var x = context.make(5, 8);
    std::copy(data.inputs[0].begin(), data.inputs[0].end(), x.value.data());
    std::vector<Param> params;
    for (size_t i = 0; i < data.params.size(); ++i)
      params.push_back({data.params[i].data(), nullptr, c.params[i].rows, c.params[i].width});
    c.op(context, {x}, params);
    EXPECT_GT(arena.live_bytes(), 0u);
  }
  EXPECT_EQ(arena.live_bytes(), 0u);
}

TEST(Tape, ASlotIsThereWhenThereIsATape) {
  ThreadPool pool(1);
  Arena arena;
  Tape tape;
  const Var with = OpContext{pool, arena, &tape}.make(3, 5), without = OpContext{pool, arena, nullptr}.make(3, 5);
  EXPECT_TRUE(with.gradient && !with.gradient->buffer);
  EXPECT_FALSE(without.gradient);
  EXPECT_EQ(with.value.size(), 15);
  EXPECT_EQ(with.view().stride, 5);
}

TEST(GradientSlot, TheFirstContributionIsTakenOverAndLaterOnesAreAdded) {
  const int64_t n = 70'001;  // several pieces of parallel work
  const std::vector<float> a = random_floats(n, 1), b = random_floats(n, 2);
  ThreadPool pool(3);
  Arena arena;
  GradientSlot slot;
  const auto buffer = [&](const std::vector<float>& x) {
    Buffer filled(arena, n);
    std::copy(x.begin(), x.end(), filled.data());
    return filled;
  };
  Buffer first = buffer(a);
  const float* const at = first.data();
  add_gradient(pool, slot, std::move(first));
  EXPECT_EQ(slot.buffer.data(), at);
  EXPECT_TRUE(gradient_target(arena, slot, 1, n).accumulate);
  EXPECT_EQ(gradient_target(arena, slot, 1, n).rows.data, at);
  add_gradient(pool, slot, buffer(b));
  std::vector<float> sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  EXPECT_TRUE(same_bits(sum, {slot.buffer.data(), slot.buffer.data() + n}));

  GradientSlot empty;
  const GradientTarget target = gradient_target(arena, empty, 7, 3);
  EXPECT_FALSE(target.accumulate);
  EXPECT_EQ(target.rows.data, empty.buffer.data());
  EXPECT_EQ(empty.buffer.size(), 21);
}

TEST(GradientSlotDeath, ContributionsHaveOneSize) {
  ThreadPool pool(1);
  Arena arena;
  GradientSlot slot{Buffer(arena, 20)};
  EXPECT_DEATH(gradient_target(arena, slot, 7, 3), "does not hold");
  EXPECT_DEATH(add_gradient(pool, slot, Buffer(arena, 21)), "does not hold");
}

// An error in one place of a sound case must be seen by the check that stands for that place.
class Planted : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reference_gradients_match(sound_));
    ASSERT_TRUE(op_matches(sound_, data_of(sound_)));
  }
  // The sound op, then `spoil` on its result.
  OpCase with(
      const std::function<void(const OpContext&, const Var& x, const Var& y, const std::vector<Param>&)>& spoil) const {
    OpCase c = sound_;
    c.op = [op = sound_.op, spoil](const OpContext& context, const std::vector<Var>& inputs,
                                   const std::vector<Param>& params) {
      const Var y = op(context, inputs, params);
      spoil(context, inputs[0], y, params);
      return y;
    };
    return c;
  }
  static std::string verdict(const OpCase& c) { return op_matches(c, data_of(c)).message(); }
  static bool says(const OpCase& c, const std::string& text) { return verdict(c).find(text) != std::string::npos; }

  const OpCase sound_ = sublayer(5, 8);
};

TEST_F(Planted, WrongReferenceGradientsAreSeen) {
  for (const bool is_param : {false, true}) {
    OpCase c = sound_;
    c.backward = [backward = sound_.backward, is_param](const Values& v, const Doubles& dy) {
      Values g = backward(v, dy);
      (is_param ? g.params : g.inputs)[0][3] += 1e-4;
      return g;
    };
    EXPECT_FALSE(reference_gradients_match(c));
  }
  OpCase missing = sound_;
  missing.backward = [backward = sound_.backward](const Values& v, const Doubles& dy) {
    Values g = backward(v, dy);
    g.params.pop_back();
    return g;
  };
  EXPECT_FALSE(reference_gradients_match(missing));
}

TEST_F(Planted, AWrongResultIsSeen) {
  EXPECT_TRUE(says(with([](const OpContext&, const Var&, const Var& y, const auto&) { y.value.data()[39] += 1e-3f; }),
                   "result: element 39"));
  OpCase unwritten = sound_;
  unwritten.op = [](const OpContext& context, const std::vector<Var>&, const std::vector<Param>&) {
    return context.make(5, 8);
  };
  EXPECT_TRUE(says(unwritten, "nan instead of"));
}

TEST_F(Planted, WrongGradientsOfTheOpAreSeen) {
  OpCase c = sound_;
  c.op = [op = sound_.op](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    // Recorded first, so it runs last.
    if (context.tape && inputs[0].gradient) {
      context.tape->record([slot = inputs[0].gradient] {
        if (slot->buffer) slot->buffer.data()[7] += 1e-3f;
      });
    }
    return op(context, inputs, params);
  };
  EXPECT_TRUE(says(c, "gradient of input 0: element 7"));
  EXPECT_TRUE(says(with([](const OpContext& context, const Var&, const Var& y, const auto& params) {
                     if (context.tape && params[1].gradient) {
                       context.tape->record([slot = y.gradient, g = params[1].gradient] {
                         if (slot->buffer) g[9] += 1e-3f;
                       });
                     }
                   }),
                   "gradient of parameter 1: element 9"));
}

TEST_F(Planted, AnOverwrittenGradientIsSeen) {
  EXPECT_TRUE(says(with([](const OpContext& context, const Var& x, const Var&, const auto&) {
                     if (context.tape && x.gradient)
                       context.tape->record([slot = x.gradient] { slot->buffer.reset(); });
                   }),
                   "sum of two gradients of input 0"));
}

TEST_F(Planted, ResultsThatDependOnThreadsAreSeen) {
  EXPECT_TRUE(says(with([](const OpContext& context, const Var&, const Var& y, const auto&) {
                     y.value.data()[0] *= 1 + 1e-6f * static_cast<float>(context.pool.threads() - 1);
                   }),
                   "threads change the bits"));
}

TEST_F(Planted, ResultsThatDependOnTheTapeAreSeen) {
  EXPECT_TRUE(says(with([](const OpContext& context, const Var&, const Var& y, const auto&) {
                     if (!context.tape) y.value.data()[0] *= 1 + 1e-6f;
                   }),
                   "without a tape the result has other bits"));
}

TEST_F(Planted, MemoryThatStaysAliveIsSeen) {
  EXPECT_TRUE(
      says(with([](const OpContext& context, const Var&, const Var&, const auto&) { context.arena.allocate(1); }),
           "64 bytes stay alive"));
}

TEST_F(Planted, AGradientFromNothingIsSeen) {
  EXPECT_TRUE(says(with([](const OpContext& context, const Var&, const Var& y, const auto& params) {
                     if (context.tape && params[0].gradient) {
                       context.tape->record([slot = y.gradient, g = params[0].gradient] {
                         if (!slot->buffer) g[0] += 1;
                       });
                     }
                   }),
                   "a gradient comes from a result that has none"));
}

}  // namespace
}  // namespace transept
