#include "kernels/distillation_ref.h"

#include <cmath>

#include "kernels/cross_entropy_ref.h"

namespace transept::ref {
namespace {

// log softmax of a row.
std::vector<double> log_probabilities(std::span<const double> z) {
  const double normalizer = cross_entropy(z, 0) + z[0];
  std::vector<double> result;
  for (const double v : z) result.push_back(v - normalizer);
  return result;
}

}  // namespace

double distillation(std::span<const double> z, std::span<const double> teacher, double weight, int32_t target) {
  if (target < 0) return 0;
  const std::vector<double> p = log_probabilities(z), q = log_probabilities(teacher);
  double divergence = 0;
  for (size_t j = 0; j < q.size(); ++j) {
    const double probability = std::exp(q[j]);
    if (probability > 0) divergence += probability * (q[j] - p[j]);
  }
  return (1 - weight) * cross_entropy(z, target) + weight * divergence;
}

std::vector<double> distillation_backward(std::span<const double> z, std::span<const double> teacher, double weight,
                                          int32_t target) {
  std::vector<double> gradient(z.size());
  if (target < 0) return gradient;
  const std::vector<double> p = log_probabilities(z), q = log_probabilities(teacher);
  for (size_t j = 0; j < z.size(); ++j) {
    const double onehot = static_cast<size_t>(target) == j ? 1 : 0;
    gradient[j] = std::exp(p[j]) - (1 - weight) * onehot - weight * std::exp(q[j]);
  }
  return gradient;
}

}  // namespace transept::ref
