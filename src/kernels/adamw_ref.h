// AdamW in double, line by line from arXiv:1711.05101 algorithm 2, with the decay scaled by the learning rate
// (PyTorch's reading). Slow and plain: the truth that the kernel is tested against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept::ref {

struct AdamW {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t t = 0;  // steps taken
  std::vector<double> m, v;

  void update(std::span<const double> gradient, std::vector<double>& theta);
};

}  // namespace transept::ref
