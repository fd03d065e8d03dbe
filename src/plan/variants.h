// One model with other attention: what multi-head, grouped, multi-query, latent and windowed attention would cost it.
#pragma once

#include <string>
#include <vector>

#include "spec/arch_spec.h"

namespace transept {

struct Variant {
  std::string name;  // "mha", "gqa", "mqa", "mla", "window"
  ArchSpec spec;
};

// In the order above; those that the model's other parts allow: no model with an encoder beside its decoder has latent
// attention. Grouped: as many KV heads as the model has when that is between one and all of them, else the divisor of
// the heads next to a quarter. Latent: d_c = 4 d_h, d_R = d_h / 2 (arXiv:2405.04434, section 3.1.2). Window: the
// model's own, else 4,096 (arXiv:2310.06825), or a quarter of a shorter context.
std::vector<Variant> attention_variants(const ArchSpec& spec);

}  // namespace transept
