// Distillation in double, as distillation.h writes it. Slow and plain: the truth that the kernel is tested against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept::ref {

// One row; target < 0: ignored.
double distillation(std::span<const double> z, std::span<const double> teacher, double weight, int32_t target);
std::vector<double> distillation_backward(std::span<const double> z, std::span<const double> teacher, double weight,
                                          int32_t target);

}  // namespace transept::ref
