// Values held between two bounds, in place: DBRX and OLMo hold queries, keys and values so ("clip_qkv" of their
// configs).
#pragma once

#include "ops/tape.h"

namespace transept {

// x becomes min(max(x, -bound), bound); its gradient is that of the result where x was between the bounds, and 0
// elsewhere. x's former value is gone: the op that made it must not have kept it. With a tape, a byte an element is
// kept outside of the arena.
void clamp_in_place(const OpContext& context, const Var& x, float bound);

}  // namespace transept
