#include "kernels/cross_entropy_ref.h"

#include <algorithm>
#include <cmath>

namespace transept::ref {
namespace {

// log sum_k exp(z_k), with the largest term taken out so that no exponential overflows.
double log_sum_exp(std::span<const double> z) {
  const double largest = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double v : z) sum += std::exp(v - largest);
  return largest + std::log(sum);
}

}  // namespace

double finished_logit(double z, double scale, double bias, double softcap) {
  const double v = scale * z + bias;
  return softcap == 0 ? v : softcap * std::tanh(v / softcap);
}

double finished_logit_slope(double z, double scale, double bias, double softcap) {
  if (softcap == 0) return 1;
  const double cosh = std::cosh((scale * z + bias) / softcap);
  return 1 / (cosh * cosh);
}

double cross_entropy(std::span<const double> z, int32_t target) {
  return target < 0 ? 0 : log_sum_exp(z) - z[static_cast<size_t>(target)];
}

std::vector<double> cross_entropy_backward(std::span<const double> z, int32_t target) {
  std::vector<double> gradient(z.size());
  if (target < 0) return gradient;
  const double normalizer = log_sum_exp(z);
  for (size_t j = 0; j < z.size(); ++j)
    gradient[j] = std::exp(z[j] - normalizer) - (static_cast<size_t>(target) == j ? 1 : 0);
  return gradient;
}

}  // namespace transept::ref
