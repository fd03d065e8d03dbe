// Norms through the tape against the references in double.
#include "ops/norm.h"

#include "kernels/norm_ref.h"
#include "op_case.h"

namespace transept {
namespace {

enum class Kind { kRms, kLayer, kLayerWithoutBias };
constexpr Kind kKinds[] = {Kind::kRms, Kind::kLayer, Kind::kLayerWithoutBias};
constexpr float kEps = 0.1f;  // large enough that its place in the formula matters

OpCase norm_case(Kind kind, int64_t rows, int64_t width) {
  OpCase c;
  c.name =
      "kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(rows) + " x " + std::to_string(width);
  c.inputs = {{rows, width, 1.5f, 0.5f}};
  c.params = {{width, 1, 0.3f, 1.f}};
  if (kind == Kind::kLayer) c.params.push_back({width, 1});
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    if (kind == Kind::kRms) return rms_norm(context, inputs[0], params[0], kEps);
    return layer_norm(context, inputs[0], params[0], kind == Kind::kLayer ? params[1] : Param{}, kEps);
  };
  c.forward = [=](const Values& v) {
    if (kind == Kind::kRms) return ref::rmsnorm(v.inputs[0], v.params[0], kEps);
    return ref::layernorm(v.inputs[0], v.params[0], kind == Kind::kLayer ? v.params[1] : Doubles{}, kEps);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const ref::NormGradient g = kind == Kind::kRms ? ref::rmsnorm_backward(dy, v.inputs[0], v.params[0], kEps)
                                                   : ref::layernorm_backward(dy, v.inputs[0], v.params[0], kEps);
    Values gradient{{g.dx}, {g.dweight}};
    if (kind == Kind::kLayer) gradient.params.push_back(g.dbias);
    return gradient;
  };
  return c;
}

TEST(Norm, ReferenceGradientsMatchCentralDifferences) {
  for (const Kind kind : kKinds) EXPECT_TRUE(reference_gradients_match(norm_case(kind, 3, 7)));
}

TEST(Norm, EqualsTheReference) {
  for (const Kind kind : kKinds) {
    for (const int64_t rows : {1, 5, 257, 300}) {
      for (const int64_t width : {8, 48, 520, 1030}) check_op(norm_case(kind, rows, width));
    }
  }
}

// More rows than the partial sums of the parameters' gradients have room for at their least size.
TEST(Norm, EqualsTheReferenceWithManyRows) { check_op(norm_case(Kind::kLayer, 1100, 1030)); }

}  // namespace
}  // namespace transept
