// Norms through the tape against the references in double.
#include "ops/norm.h"

#include "kernels/norm_ref.h"
#include "op_case.h"

namespace transept {
namespace {

struct Kind {
  bool rms, weighted = true;
  float offset = 0;
  bool bias = false;
  const char* name;
};
constexpr Kind kKinds[] = {
    {.rms = true, .name = "RMSNorm"},
    {.rms = true, .offset = 1, .name = "RMSNorm, unit offset"},
    {.rms = true, .weighted = false, .name = "RMSNorm without a weight"},
    {.rms = false, .bias = true, .name = "LayerNorm"},
    {.rms = false, .name = "LayerNorm without a bias"},
    {.rms = false, .weighted = false, .name = "LayerNorm without parameters"},
    {.rms = false, .weighted = false, .bias = true, .name = "LayerNorm without a weight"},
};
constexpr float kEps = 0.1f;  // large enough that its place in the formula matters

// What the reference takes for the weight.
Doubles factors(const Kind& kind, const Values& v, int64_t width) {
  Doubles f(static_cast<size_t>(width), 1.0);
  if (!kind.weighted) return f;
  for (size_t i = 0; i < f.size(); ++i) f[i] = static_cast<double>(kind.offset) + v.params[0][i];
  return f;
}

OpCase norm_case(const Kind& kind, int64_t rows, int64_t width) {
  OpCase c;
  c.name = kind.name + std::string(", ") + std::to_string(rows) + " x " + std::to_string(width);
  c.inputs = {{rows, width, 1.5f, 0.5f}};
  if (kind.weighted) c.params.push_back({width, 1, 0.3f, 1.f});
  if (kind.bias) c.params.push_back({width, 1});
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    const Param weight = kind.weighted ? params.front() : Param{}, bias = kind.bias ? params.back() : Param{};
    return kind.rms ? rms_norm(context, inputs[0], weight, kind.offset, kEps)
                    : layer_norm(context, inputs[0], weight, bias, kEps);
  };
  c.forward = [=](const Values& v) {
    const Doubles weight = factors(kind, v, width);
    if (kind.rms) return ref::rmsnorm(v.inputs[0], weight, kEps);
    return ref::layernorm(v.inputs[0], weight, kind.bias ? v.params.back() : Doubles{}, kEps);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const Doubles weight = factors(kind, v, width);
    const ref::NormGradient g = kind.rms ? ref::rmsnorm_backward(dy, v.inputs[0], weight, kEps)
                                         : ref::layernorm_backward(dy, v.inputs[0], weight, kEps);
    Values gradient{{g.dx}, {}};
    if (kind.weighted) gradient.params.push_back(g.dweight);
    if (kind.bias) gradient.params.push_back(g.dbias);
    return gradient;
  };
  return c;
}

TEST(Norm, ReferenceGradientsMatchCentralDifferences) {
  for (const Kind& kind : kKinds) EXPECT_TRUE(reference_gradients_match(norm_case(kind, 3, 7)));
}

TEST(Norm, EqualsTheReference) {
  for (const Kind& kind : kKinds) {
    for (const int64_t rows : {1, 5, 257, 300}) {
      for (const int64_t width : {8, 48, 520, 1030}) check_op(norm_case(kind, rows, width));
    }
  }
}

// More rows than the partial sums of the parameters' gradients have room for at their least size.
TEST(Norm, EqualsTheReferenceWithManyRows) { check_op(norm_case(kKinds[3], 1100, 1030)); }

}  // namespace
}  // namespace transept
