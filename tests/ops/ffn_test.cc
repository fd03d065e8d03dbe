// Feed-forward layers of every activation and form, with every end, against compositions in double.
#include "ops/ffn.h"

#include "double_ops.h"
#include "kernels/activation_ref.h"
#include "op_case.h"

namespace transept {
namespace {

struct Form {
  ActivationKind activation;
  bool gated, in_bias;
};

std::vector<Form> every_form() {
  std::vector<Form> forms;
  for (const ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kGelu, ActivationKind::kGeluTanh, ActivationKind::kSilu,
        ActivationKind::kReluSquared, ActivationKind::kSigmoid, ActivationKind::kClampedSilu}) {
    for (const bool gated : {false, true}) {
      for (const bool in_bias : {false, true}) forms.push_back({kind, gated, in_bias});
    }
  }
  return forms;
}

struct Sizes {
  int64_t rows, in, hidden, out;
};

// Parameters: first projection, second projection, bias of the first, bias of the second.
OpCase ffn_case(Sizes s, Form form, EndParts parts) {
  const int64_t z_width = form.gated ? 2 * s.hidden : s.hidden;
  OpCase c;
  c.name = std::to_string(s.rows) + " x " + std::to_string(s.in) + " by " + std::to_string(s.hidden) + " to " +
           std::to_string(s.out) + ", activation " + std::to_string(static_cast<int>(form.activation)) +
           (form.gated ? " gated" : "") + (form.in_bias ? " +first bias" : "") + parts.name();
  c.inputs = {{s.rows, s.in}};
  if (parts.residual) c.inputs.push_back({s.rows, s.out});
  c.params = {weight_of(z_width, s.in), weight_of(s.out, s.hidden)};
  if (form.in_bias) c.params.push_back({z_width, 1});
  if (parts.bias) c.params.push_back({s.out, 1});
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    const FfnParams p{form.activation, form.gated, params[0], form.in_bias ? params[2] : Param{}, params[1]};
    return ffn(context, inputs[0], p, parts.end(s.out, inputs, params));
  };
  const auto first = [=](const Values& v) {
    Doubles z = times_transposed(v.inputs[0], v.params[0], s.in);
    if (form.in_bias) add_to_rows(v.params[2], z);
    return z;
  };
  const auto activated = [=](const Doubles& z) {
    if (form.gated) return ref::gated(form.activation, z, static_cast<size_t>(s.hidden));
    Doubles a;
    for (const double x : z) a.push_back(ref::activation(form.activation, x));
    return a;
  };
  c.forward = [=](const Values& v) {
    return parts.forward(times_transposed(activated(first(v)), v.params[1], s.hidden), s.out, v);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values gradient{{{}}, {{}, {}}};
    if (form.in_bias) gradient.params.push_back({});
    const Doubles g = parts.backward(dy, s.out, gradient), z = first(v), da = times(g, v.params[1], s.hidden);
    gradient.params[1] = transposed_times(g, activated(z), s.rows);
    Doubles dz;
    if (form.gated) {
      dz = ref::gated_backward(form.activation, z, da, static_cast<size_t>(s.hidden));
    } else {
      for (size_t i = 0; i < z.size(); ++i) dz.push_back(da[i] * ref::activation_slope(form.activation, z[i]));
    }
    if (form.in_bias) gradient.params[2] = column_sums(dz, z_width);
    gradient.params[0] = transposed_times(dz, v.inputs[0], s.rows);
    gradient.inputs[0] = times(dz, v.params[0], s.in);
    return gradient;
  };
  return c;
}

TEST(Ffn, ReferenceGradientsMatchCentralDifferences) {
  for (const Form& form : every_form()) {
    for (const EndParts& parts : every_end())
      EXPECT_TRUE(reference_gradients_match(ffn_case({3, 4, 5, 2}, form, parts)));
  }
}

TEST(Ffn, EqualsTheReferenceInEveryFormWithEveryEnd) {
  for (const Form& form : every_form()) {
    for (const EndParts& parts : every_end()) {
      for (const Sizes& s : {Sizes{1, 8, 24, 8}, {5, 8, 21, 48}}) check_op(ffn_case(s, form, parts));
    }
  }
}

// ReLU is not among these: where float32 and double disagree about the sign of a value beside zero, its slope jumps,
// and here are enough values for that to happen.
TEST(Ffn, EqualsTheReferenceAcrossTiles) {
  const EndParts all{true, true, true};
  check_op(ffn_case({5, 48, 1030, 8}, {ActivationKind::kSilu, true, true}, all));
  check_op(ffn_case({257, 48, 520, 33}, {ActivationKind::kSilu, true, false}, {false, true, true}));
  check_op(ffn_case({300, 17, 530, 48}, {ActivationKind::kGelu, false, true}, all));
  check_op(ffn_case({300, 8, 1030, 17}, {ActivationKind::kGeluTanh, true, true}, all));
}

// Ones pass an identity, ReLU, and another identity as ones: what is left is the mask.
TEST(Ffn, DropsTheSameElementsForwardAndBackward) {
  for (const auto& [rows, width] : {std::array<int64_t, 2>{1, 520}, {300, 520}}) {
    const DropoutMask mask = EndParts{.dropout = true}.mask(width);
    std::vector<float> factors, identity(static_cast<size_t>(width * width));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) factors.push_back(static_cast<float>(ref::dropout_factor(mask, r, c)));
    }
    for (int64_t i = 0; i < width; ++i) identity[static_cast<size_t>(i * width + i)] = 1;
    const Param square{identity.data(), nullptr, width, width};
    for_each_instruction_set([&] {
      ThreadPool pool(2);
      Arena arena;
      Tape tape;
      const OpContext context{pool, arena, &tape};
      const Var x = context.make(rows, width);
      std::fill_n(x.value.data(), x.value.size(), 1.f);
      const Var y = ffn(context, x, {ActivationKind::kRelu, false, square, {}, square},
                        {.bias = {}, .dropout = mask, .residual = nullptr});
      EXPECT_TRUE(same_bits({y.value.data(), y.value.data() + y.value.size()}, factors));
      y.gradient->buffer = x.value;
      tape.backward();
      EXPECT_TRUE(same_bits({x.gradient->buffer.data(), x.gradient->buffer.data() + x.value.size()}, factors));
    });
  }
}

}  // namespace
}  // namespace transept
