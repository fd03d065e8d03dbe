// Holding values between bounds, in place.
#include "ops/clamp.h"

#include <algorithm>
#include <cmath>

#include "op_case.h"

namespace transept {
namespace {

OpCase clamp_case(int64_t rows, int64_t width, double bound) {
  OpCase c;
  c.name = std::to_string(rows) + " x " + std::to_string(width) + " within " + std::to_string(bound);
  c.inputs = {{rows, width}};
  c.in_place = true;
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>&) {
    clamp_in_place(context, inputs[0], static_cast<float>(bound));
    return inputs[0];
  };
  c.forward = [=](const Values& v) {
    Doubles y = v.inputs[0];
    for (double& x : y) x = std::clamp(x, -bound, bound);
    return y;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Doubles dx = dy;
    for (size_t i = 0; i < dx.size(); ++i) dx[i] *= std::abs(v.inputs[0][i]) <= bound ? 1 : 0;
    return Values{{dx}, {}};
  };
  return c;
}

TEST(Clamp, ReferenceGradientsMatchCentralDifferences) {
  EXPECT_TRUE(reference_gradients_match(clamp_case(5, 7, 0.5)));
}

TEST(Clamp, EqualsTheReference) {
  check_op(clamp_case(5, 7, 0.5));
  check_op(clamp_case(300, 130, 0.25));
  check_op(clamp_case(4, 9, 100));
}

}  // namespace
}  // namespace transept
