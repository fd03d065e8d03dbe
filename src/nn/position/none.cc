// No position encoding: order reaches the model through the causal mask alone (arXiv:2203.16634).
#include "nn/position/position.h"

namespace transept {

std::unique_ptr<Position> build(const NoPosition&, const ArchSpec&, const Parameters&, const std::string&) {
  return std::make_unique<Position>();
}

}  // namespace transept
