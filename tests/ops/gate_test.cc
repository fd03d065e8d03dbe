// Rows times the sigmoid of a logit of their own, against a composition in double.
#include "ops/gate.h"

#include <cmath>

#include "double_ops.h"
#include "op_case.h"

namespace transept {
namespace {

OpCase gate_case(int64_t rows, int64_t width, EndParts parts) {
  OpCase c;
  c.name = std::to_string(rows) + " x " + std::to_string(width) + parts.name();
  c.inputs = {{rows, width}, {rows, 1, 2.f}};
  if (parts.residual) c.inputs.push_back({rows, width});
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    return gate_rows(context, inputs[0], inputs[1], parts.end(width, inputs, params));
  };
  const size_t w = static_cast<size_t>(width);
  const auto gate = [](const Values& v, size_t r) { return 1 / (1 + std::exp(-v.inputs[1][r])); };
  c.forward = [=](const Values& v) {
    Doubles y = v.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) y[i] *= gate(v, i / w);
    return parts.forward(y, width, v);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values gradient{{{}, Doubles(v.inputs[1].size())}, {}};
    const Doubles g = parts.backward(dy, width, gradient);
    for (size_t i = 0; i < g.size(); ++i) {
      const double s = gate(v, i / w);
      gradient.inputs[0].push_back(g[i] * s);
      gradient.inputs[1][i / w] += g[i] * v.inputs[0][i] * s * (1 - s);
    }
    return gradient;
  };
  return c;
}

TEST(GateRows, ReferenceGradientsMatchCentralDifferences) {
  for (const EndParts& parts : every_end()) {
    if (parts.bias) continue;
    EXPECT_TRUE(reference_gradients_match(gate_case(3, 5, parts)));
  }
}

TEST(GateRows, EqualsTheReferenceWithEveryEnd) {
  for (const EndParts& parts : every_end()) {
    if (parts.bias) continue;
    check_op(gate_case(1, 7, parts));
    check_op(gate_case(300, 130, parts));
  }
}

}  // namespace
}  // namespace transept
