// Activations and their gated forms; formulas in activation.h. Both GELUs need no error function or hyperbolic tangent
// of their own: GELU(x) = x Phi(x), and 0.5 x (1 + tanh u) = x sigmoid(2u).
#include "kernels/activation.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;

// Each: act(x), returned; WithSlope writes act'(x) too. A NaN stays NaN.
struct Relu {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Value(D d, V x) {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V WithSlope(D d, V x, V& slope) {
    slope = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f));
    return Value(d, x);
  }
};

// max(x, 0)^2 (arXiv:2109.08668 section 3).
struct ReluSquared {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Value(D d, V x) {
    const V positive = Relu::Value(d, x);
    return hn::Mul(positive, positive);
  }
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V WithSlope(D d, V x, V& slope) {
    const V positive = Relu::Value(d, x);
    slope = hn::Add(positive, positive);
    return hn::Mul(positive, positive);
  }
};

struct Logistic {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Value(D d, V x) {
    return Sigmoid(d, x);
  }
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V WithSlope(D d, V x, V& slope) {
    const V s = Sigmoid(d, x);
    slope = hn::NegMulAdd(s, s, s);
    return s;
  }
};

struct Silu {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Value(D d, V x) {
    return hn::Mul(x, Sigmoid(d, x));
  }
  // s (1 + x (1 - s)) with s = sigmoid(x).
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V WithSlope(D d, V x, V& slope) {
    const V s = Sigmoid(d, x), y = hn::Mul(x, s);
    slope = hn::MulAdd(y, hn::Sub(hn::Set(d, 1.0f), s), s);
    return y;
  }
};

// g sigmoid(1.702 g) with g = min(x, 7); in the gated form the other factor is clamp(up, -7, 7) + 1 (arXiv:2508.10925
// section 2.2; the constants are those of the published code).
struct ClampedSilu {
  static constexpr float kGain = 1.702f, kLimit = 7.0f;
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Value(D d, V x) {
    const V limit = hn::Set(d, kLimit), g = hn::IfThenElse(hn::Gt(x, limit), limit, x);
    return hn::Mul(g, Sigmoid(d, hn::Mul(g, hn::Set(d, kGain))));
  }
  // s + 1.702 g s (1 - s) with s = sigmoid(1.702 g), and 0 beyond the limit.
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V WithSlope(D d, V x, V& slope) {
    const V limit = hn::Set(d, kLimit), gain = hn::Set(d, kGain);
    const auto beyond = hn::Gt(x, limit);
    const V g = hn::IfThenElse(beyond, limit, x), s = Sigmoid(d, hn::Mul(g, gain)), y = hn::Mul(g, s);
    slope = hn::IfThenZeroElse(beyond, hn::MulAdd(hn::Mul(y, gain), hn::Sub(hn::Set(d, 1.0f), s), s));
    return y;
  }
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Up(D d, V up) {
    const V high = hn::Set(d, kLimit), low = hn::Set(d, -kLimit);
    const V at_most = hn::IfThenElse(hn::Gt(up, high), high, up);
    return hn::Add(hn::IfThenElse(hn::Lt(at_most, low), low, at_most), hn::Set(d, 1.0f));
  }
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V ThroughUp(D d, V up, V gradient) {
    return hn::IfThenElseZero(hn::Le(hn::Abs(up), hn::Set(d, kLimit)), gradient);
  }
};

// What multiplies the activated gate, and what of its gradient is that of `up`.
template <class Act, class D, class V>
HWY_INLINE V UpFactor(D d, V up) {
  if constexpr (std::is_same_v<Act, ClampedSilu>) return ClampedSilu::Up(d, up);
  return up;
}
template <class Act, class D, class V>
HWY_INLINE V UpGradient(D d, V up, V gradient) {
  if constexpr (std::is_same_v<Act, ClampedSilu>) return ClampedSilu::ThroughUp(d, up, gradient);
  return gradient;
}

struct Gelu {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Value(D d, V x) {
    V density = x;
    return hn::Mul(x, NormalDistribution(d, x, density));
  }
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V WithSlope(D d, V x, V& slope) {
    V density = x;
    const V distribution = NormalDistribution(d, x, density);
    slope = hn::MulAdd(x, density, distribution);
    return hn::Mul(x, distribution);
  }
};

// u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr float kTwoRoot = 1.59576912f;         // 2 sqrt(2 / pi)
  static constexpr float kTwoRootCubic = 0.0713548163f;  // 2 sqrt(2 / pi) 0.044715
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V Value(D d, V x) {
    const V square = hn::Mul(x, x);
    return hn::Mul(x, Sigmoid(d, hn::Mul(x, hn::MulAdd(square, hn::Set(d, kTwoRootCubic), hn::Set(d, kTwoRoot)))));
  }
  // s + x s (1 - s) (2u)' with s = sigmoid(2u).
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V WithSlope(D d, V x, V& slope) {
    const V square = hn::Mul(x, x);
    const V s = Sigmoid(d, hn::Mul(x, hn::MulAdd(square, hn::Set(d, kTwoRootCubic), hn::Set(d, kTwoRoot))));
    const V steepness = hn::MulAdd(square, hn::Set(d, 3 * kTwoRootCubic), hn::Set(d, kTwoRoot));
    const V y = hn::Mul(x, s);
    slope = hn::MulAdd(hn::Mul(y, hn::Sub(hn::Set(d, 1.0f), s)), steepness, s);
    return y;
  }
};

template <class Act>
void Forward(ConstRows x, Rows y) {
  const DF d;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    float* out = y.row(r);
    ForLanes(d, x.width,
             [&](int64_t i, auto part) HWY_ATTR { part.Store(Act::Value(d, part.Load(d, in + i)), d, out + i); });
  }
}

template <class Act>
void Backward(ConstRows x, ConstRows dy, Rows dx, Rows y) {
  const DF d;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    const float* d_out = dy.row(r);
    float* d_in = dx.row(r);
    float* out = y.row(r);
    ForLanes(d, x.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto value = part.Load(d, in + i), upstream = part.Load(d, d_out + i);
      auto slope = value;
      const auto result = Act::WithSlope(d, value, slope);
      part.Store(hn::Mul(upstream, slope), d, d_in + i);
      part.Store(result, d, out + i);
    });
  }
}

template <class Act>
void GatedForwardOf(ConstRows gates, ConstRows ups, Rows y) {
  const DF d;
  for (int64_t r = 0; r < y.rows; ++r) {
    const float* gate = gates.row(r);
    const float* up = ups.row(r);
    float* out = y.row(r);
    ForLanes(d, y.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto factor = UpFactor<Act>(d, part.Load(d, up + i));
      part.Store(hn::Mul(Act::Value(d, part.Load(d, gate + i)), factor), d, out + i);
    });
  }
}

template <class Act>
void GatedBackwardOf(ConstRows gates, ConstRows ups, ConstRows dy, Rows d_gates, Rows d_ups, Rows y) {
  const DF d;
  for (int64_t r = 0; r < y.rows; ++r) {
    const float* gate = gates.row(r);
    const float* up = ups.row(r);
    const float* d_out = dy.row(r);
    float* d_gate = d_gates.row(r);
    float* d_up = d_ups.row(r);
    float* out = y.row(r);
    ForLanes(d, y.width, [&](int64_t i, auto part) HWY_ATTR {
      const auto g = part.Load(d, gate + i), u = part.Load(d, up + i), upstream = part.Load(d, d_out + i);
      auto slope = g;
      const auto activated = Act::WithSlope(d, g, slope), factor = UpFactor<Act>(d, u);
      part.Store(hn::Mul(hn::Mul(upstream, factor), slope), d, d_gate + i);
      part.Store(UpGradient<Act>(d, u, hn::Mul(upstream, activated)), d, d_up + i);
      part.Store(hn::Mul(activated, factor), d, out + i);
    });
  }
}

// body(Act{}) with the struct of that kind.
template <class F>
void WithKind(ActivationKind kind, const F& body) {
  switch (kind) {
    case ActivationKind::kRelu:
      return body(Relu());
    case ActivationKind::kReluSquared:
      return body(ReluSquared());
    case ActivationKind::kGelu:
      return body(Gelu());
    case ActivationKind::kGeluTanh:
      return body(GeluTanh());
    case ActivationKind::kSilu:
      return body(Silu());
    case ActivationKind::kSigmoid:
      return body(Logistic());
    case ActivationKind::kClampedSilu:
      return body(ClampedSilu());
  }
}

void ActivationForward(ActivationKind kind, ConstRows x, Rows y) {
  WithKind(kind, [&]<class Act>(Act) { Forward<Act>(x, y); });
}

void ActivationBackward(ActivationKind kind, ConstRows x, ConstRows dy, Rows dx, Rows y) {
  WithKind(kind, [&]<class Act>(Act) { Backward<Act>(x, dy, dx, y); });
}

void GatedForward(ActivationKind kind, ConstRows gate, ConstRows up, Rows y) {
  WithKind(kind, [&]<class Act>(Act) { GatedForwardOf<Act>(gate, up, y); });
}

void GatedBackward(ActivationKind kind, ConstRows gate, ConstRows up, ConstRows dy, Rows d_gate, Rows d_up, Rows y) {
  WithKind(kind, [&]<class Act>(Act) { GatedBackwardOf<Act>(gate, up, dy, d_gate, d_up, y); });
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(ActivationForward);
HWY_EXPORT(ActivationBackward);
HWY_EXPORT(GatedForward);
HWY_EXPORT(GatedBackward);

void activation_forward(ActivationKind kind, ConstRows x, Rows y) {
  HWY_DYNAMIC_DISPATCH(ActivationForward)(kind, x, y);
}

void activation_backward(ActivationKind kind, ConstRows x, ConstRows dy, Rows dx, Rows y) {
  HWY_DYNAMIC_DISPATCH(ActivationBackward)(kind, x, dy, dx, y);
}

void gated_forward(ActivationKind kind, ConstRows gate, ConstRows up, Rows y) {
  HWY_DYNAMIC_DISPATCH(GatedForward)(kind, gate, up, y);
}

void gated_backward(ActivationKind kind, ConstRows gate, ConstRows up, ConstRows dy, Rows d_gate, Rows d_up, Rows y) {
  HWY_DYNAMIC_DISPATCH(GatedBackward)(kind, gate, up, dy, d_gate, d_up, y);
}

}  // namespace transept
#endif
