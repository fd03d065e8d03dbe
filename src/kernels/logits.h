// What a head does to its logits after the product: scale, bias, soft cap (arXiv:2408.00118 section 2). One call runs
// on one thread.
#pragma once

#include "tensor/rows.h"

namespace transept {

struct LogitsShape {
  float scale = 1;
  float softcap = 0;  // 0: none
};

// z = scale * z + bias, then, with a cap, z = softcap * tanh(z / softcap). `bias` [width] may be null.
void finish_logits_rows(const LogitsShape& shape, const float* bias, Rows z);

// The gradient before the cap: g *= 1 - (z / softcap)^2, z being finished logits. Only with a cap.
void uncap_logits_gradient(float softcap, ConstRows z, Rows g);

}  // namespace transept
