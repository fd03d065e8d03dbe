// A batch as a forward pass that is not trained reads it: no cache, no dropout.
#pragma once

#include "data/batch.h"
#include "nn/model.h"

namespace transept {

// The batch must outlive the call.
inline ForwardCall call_of(const Batch& batch) {
  return {.tokens = batch.tokens,
          .layout = batch.layout,
          .source_tokens = batch.source_tokens,
          .source_layout = batch.source_layout,
          .dropout = {},
          .observe = {}};
}

}  // namespace transept
