// The kernels' name of a spec's activation: kernels know no spec, and the spec knows no kernels.
#pragma once

#include "kernels/activation.h"
#include "spec/ffn.h"

namespace transept {

inline ActivationKind activation_kind(Activation a) {
  switch (a) {
    case Activation::kRelu:
      return ActivationKind::kRelu;
    case Activation::kReluSquared:
      return ActivationKind::kReluSquared;
    case Activation::kGelu:
      return ActivationKind::kGelu;
    case Activation::kGeluTanh:
      return ActivationKind::kGeluTanh;
    case Activation::kSilu:
      return ActivationKind::kSilu;
    case Activation::kSigmoid:
      return ActivationKind::kSigmoid;
    case Activation::kClampedSilu:
      return ActivationKind::kClampedSilu;
  }
  return ActivationKind::kRelu;
}

}  // namespace transept
