// Activations of the feed-forward layers and their gated forms (arXiv:1606.08415, arXiv:2002.05202; ReLU squared,
// arXiv:2109.08668), with their gradients. One call runs on one thread. The kinds are those of the spec's table,
// restated here because kernels know no spec.
#pragma once

#include "tensor/rows.h"

namespace transept {

enum class ActivationKind { kRelu, kReluSquared, kGelu, kGeluTanh, kSilu, kSigmoid, kClampedSilu };

// y = act(x). y may be x.
void activation_forward(ActivationKind kind, ConstRows x, Rows y);

// Reads x and dy; writes dx = dy * act'(x) and y = act(x), which the weight gradient of the next projection needs.
// dx may alias x, and y may alias dy: each element is read before its place is written. relu'(0) = 0.
void activation_backward(ActivationKind kind, ConstRows x, ConstRows dy, Rows dx, Rows y);

// y = act(gate) * up, all of one shape, and of kClampedSilu act(gate) * (clamp(up) + 1); the strides may differ, so
// gate and up may be the halves of one fused projection.
void gated_forward(ActivationKind kind, ConstRows gate, ConstRows up, Rows y);

// Reads gate, up and dy; writes d_gate = dy * up * act'(gate), d_up = dy * act(gate) and y = act(gate) * up.
// Of kClampedSilu clamp(up) + 1 stands for up, and d_up is 0 beyond the clamp.
// d_gate may alias gate, d_up may alias up, and y may alias dy.
void gated_backward(ActivationKind kind, ConstRows gate, ConstRows up, ConstRows dy, Rows d_gate, Rows d_up, Rows y);

}  // namespace transept
