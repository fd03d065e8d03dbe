// One layer of a model.
#pragma once

#include <cstdint>

namespace transept {

struct LayerPlace {
  bool encoder = false;  // of an encoder-decoder's encoder
  int64_t layer = 0;
  bool operator==(const LayerPlace&) const = default;
};

}  // namespace transept
