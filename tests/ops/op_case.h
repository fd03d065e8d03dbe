// How every op is tested. A case holds an op with the shapes of what it reads, and the same computation in double: a
// forward composition of the references, and a backward one. The double gradients are held to central differences of
// the double forward; the op, forward and backward through the tape, to both double compositions, in every setting that
// must not change them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/tape.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {

using Doubles = std::vector<double>;

// Random values of this spread around `shift`.
struct Operand {
  int64_t rows, width;
  float scale = 1, shift = 0;
};

// The values of all operands of a case, or their gradients.
struct Values {
  std::vector<Doubles> inputs, params;
};

struct OpCase {
  std::string name;
  std::vector<Operand> inputs;  // activations
  std::vector<Operand> params;  // [out, in]; vectors are [out, 1]
  std::function<Var(const OpContext&, const std::vector<Var>&, const std::vector<Param>&)> op;
  std::function<Doubles(const Values&)> forward;
  std::function<Values(const Values&, const Doubles& dy)> backward;
  bool in_place = false;  // the result is the first input
  float own_dy = 0;  // not 0: the op itself starts the backward pass with this gradient of every element of its result
};

inline Doubles operator+(Doubles a, const Doubles& b) {
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// The numbers of a case: a fixed seed for each operand, and what the double compositions make of them.
struct CaseData {
  std::vector<std::vector<float>> inputs, params;                  // values
  std::vector<std::vector<float>> earlier_inputs, earlier_params;  // gradients that are there before
  std::vector<float> dy;
  Values values;
  Doubles y;
  Values gradient;
};

inline CaseData data_of(const OpCase& c) {
  CaseData data;
  uint64_t seed = 100;
  const auto draw = [&](const std::vector<Operand>& operands, auto& values, auto& earlier,
                        std::vector<Doubles>& doubles) {
    for (const Operand& o : operands) {
      values.push_back(random_floats(o.rows * o.width, seed++, o.scale, o.shift));
      earlier.push_back(random_floats(o.rows * o.width, seed++));
      doubles.push_back(as_doubles(values.back()));
    }
  };
  draw(c.inputs, data.inputs, data.earlier_inputs, data.values.inputs);
  draw(c.params, data.params, data.earlier_params, data.values.params);
  data.y = c.forward(data.values);
  data.dy = random_floats(static_cast<int64_t>(data.y.size()), seed);
  if (c.own_dy != 0) std::fill(data.dy.begin(), data.dy.end(), c.own_dy);
  data.gradient = c.backward(data.values, as_doubles(data.dy));
  return data;
}

// The double gradients of every operand against central differences.
inline ::testing::AssertionResult reference_gradients_match(const OpCase& c) {
  const CaseData data = data_of(c);
  Values at = data.values;
  for (const bool is_param : {false, true}) {
    std::vector<Doubles>& operands = is_param ? at.params : at.inputs;
    const std::vector<Doubles>& expected = is_param ? data.gradient.params : data.gradient.inputs;
    if (expected.size() != operands.size()) return ::testing::AssertionFailure() << "a gradient is missing";
    for (size_t i = 0; i < operands.size(); ++i) {
      const Doubles before = operands[i];
      const auto loss = [&](const Doubles& x) {
        operands[i] = x;
        const Doubles y = c.forward(at);
        double sum = 0;
        for (size_t k = 0; k < y.size(); ++k) sum += y[k] * static_cast<double>(data.dy[k]);
        return sum;
      };
      const auto result = gradient_matches(loss, before, expected[i], tolerance::kGradcheck);
      operands[i] = before;
      if (!result)
        return ::testing::AssertionFailure()
               << c.name << ", " << (is_param ? "parameter " : "input ") << i << ": " << result.message();
    }
  }
  return ::testing::AssertionSuccess();
}

struct Setting {
  int threads = 1;
  bool tape = true;
  bool dy = true;              // a gradient of the result arrives
  bool earlier = false;        // the inputs have a gradient from another consumer already
  bool inputs_flow = true;     // gradients flow back into the inputs
  bool params_trained = true;  // parameters have gradients, to which contributions are added
};

struct Outcome {
  std::vector<float> y;
  std::vector<std::vector<float>> inputs, params;  // gradients; empty where there is none
  bool has_slot = false;
  size_t live_bytes = 0;  // what is still alive in the arena when all handles are gone
};

inline Outcome run_op(const OpCase& c, const CaseData& data, const Setting& setting) {
  ThreadPool pool(setting.threads);
  Arena arena;
  int64_t floats = int64_t{1} << 16;
  for (const Operand& o : c.inputs) floats += 4 * o.rows * o.width;
  for (const Operand& o : c.params) floats += o.rows * o.width;
  {
    // What the op does not write, and what it reads before it writes, is NaN.
    const Buffer poison(arena, floats);
    std::fill_n(poison.data(), floats, std::numeric_limits<float>::quiet_NaN());
  }
  Outcome outcome;
  Tape tape;
  const OpContext context{pool, arena, setting.tape ? &tape : nullptr};
  outcome.params.resize(c.params.size());
  if (setting.params_trained) outcome.params = data.earlier_params;
  std::vector<Param> params;
  for (size_t i = 0; i < c.params.size(); ++i) {
    params.push_back({data.params[i].data(), setting.params_trained ? outcome.params[i].data() : nullptr,
                      c.params[i].rows, c.params[i].width});
  }
  const auto filled = [&](const std::vector<float>& x) {
    Buffer buffer(arena, static_cast<int64_t>(x.size()));
    std::copy(x.begin(), x.end(), buffer.data());
    return buffer;
  };
  std::vector<std::shared_ptr<GradientSlot>> slots(c.inputs.size());
  {
    std::vector<Var> inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      if (setting.tape && setting.inputs_flow) slots[i] = std::make_shared<GradientSlot>();
      if (setting.earlier) slots[i]->buffer = filled(data.earlier_inputs[i]);
      inputs.push_back({filled(data.inputs[i]), c.inputs[i].rows, c.inputs[i].width, slots[i]});
    }
    const Var y = c.op(context, inputs, params);
    outcome.y.assign(y.value.data(), y.value.data() + y.rows * y.width);
    outcome.has_slot = y.gradient != nullptr;
    if (y.gradient && setting.dy && c.own_dy == 0) y.gradient->buffer = filled(data.dy);
  }
  if (setting.tape) tape.backward();
  for (const auto& slot : slots) {
    outcome.inputs.emplace_back();
    if (!slot || !slot->buffer) continue;
    outcome.inputs.back().assign(slot->buffer.data(), slot->buffer.data() + slot->buffer.size());
    slot->buffer.reset();
  }
  outcome.live_bytes = arena.live_bytes();
  return outcome;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}
inline bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same_bits(x, y); });
}

// On the instruction set that runs now.
inline ::testing::AssertionResult op_matches(const OpCase& c, const CaseData& data) {
  const auto failure = [&] { return ::testing::AssertionFailure() << c.name << ": "; };
  std::vector<std::vector<float>> no_inputs(c.inputs.size()), no_params(c.params.size());

  const Outcome base = run_op(c, data, {});
  if (base.live_bytes != 0) return failure() << base.live_bytes << " bytes stay alive";
  if (!base.has_slot) return failure() << "the result has no slot for its gradient";
  if (auto r = close(base.y, data.y, tolerance::kKernel); !r) return failure() << "result: " << r.message();
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const auto r = close(base.inputs[i], data.gradient.inputs[i], tolerance::kKernel);
    if (!r) return failure() << "gradient of input " << i << ": " << r.message();
  }
  for (size_t i = 0; i < c.params.size(); ++i) {
    const auto r =
        close(base.params[i], as_doubles(data.earlier_params[i]) + data.gradient.params[i], tolerance::kKernel);
    if (!r) return failure() << "gradient of parameter " << i << ": " << r.message();
  }

  if (!c.in_place) {
    const Outcome added = run_op(c, data, {.earlier = true});
    if (added.live_bytes != 0) return failure() << added.live_bytes << " bytes stay alive after adding";
    if (!same_bits(added.params, base.params))
      return failure() << "an earlier gradient of an input changes those of parameters";
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const Doubles sum = as_doubles(data.earlier_inputs[i]) + data.gradient.inputs[i];
      const auto r = close(added.inputs[i], sum, tolerance::kKernel);
      if (!r) return failure() << "sum of two gradients of input " << i << ": " << r.message();
    }
  }
  for (const int threads : {2, 3}) {
    const Outcome other = run_op(c, data, {.threads = threads});
    if (!same_bits(other.y, base.y) || !same_bits(other.inputs, base.inputs) || !same_bits(other.params, base.params)) {
      return failure() << threads << " threads change the bits";
    }
  }
  const Outcome bare = run_op(c, data, {.tape = false});
  if (!same_bits(bare.y, base.y)) return failure() << "without a tape the result has other bits";
  if (bare.has_slot || !same_bits(bare.params, data.earlier_params) || bare.live_bytes != 0)
    return failure() << "without a tape something is kept or written";
  const Outcome frozen = run_op(c, data, {.params_trained = false});
  if (!same_bits(frozen.inputs, base.inputs) || frozen.live_bytes != 0)
    return failure() << "frozen parameters change the gradients of inputs";
  if (!c.in_place) {
    const Outcome sealed = run_op(c, data, {.inputs_flow = false});
    if (!same_bits(sealed.params, base.params) || !same_bits(sealed.inputs, no_inputs) || sealed.live_bytes != 0) {
      return failure() << "inputs without gradients change those of parameters";
    }
  }
  if (c.own_dy == 0) {
    const Outcome silent = run_op(c, data, {.dy = false});
    if (!same_bits(silent.inputs, no_inputs) || !same_bits(silent.params, data.earlier_params) ||
        silent.live_bytes != 0) {
      return failure() << "a gradient comes from a result that has none";
    }
  }
  return ::testing::AssertionSuccess();
}

inline void check_op(const OpCase& c) {
  const CaseData data = data_of(c);
  for_each_instruction_set([&] { EXPECT_TRUE(op_matches(c, data)); });
}

}  // namespace transept
