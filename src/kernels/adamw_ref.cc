#include "kernels/adamw_ref.h"

#include <cmath>

namespace transept::ref {

void AdamW::update(std::span<const double> gradient, std::vector<double>& theta) {
  m.resize(theta.size());
  v.resize(theta.size());
  ++t;
  for (size_t i = 0; i < theta.size(); ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * gradient[i];
    v[i] = beta2 * v[i] + (1 - beta2) * gradient[i] * gradient[i];
    const double m_hat = m[i] / (1 - std::pow(beta1, static_cast<double>(t)));
    const double v_hat = v[i] / (1 - std::pow(beta2, static_cast<double>(t)));
    theta[i] -= lr * (m_hat / (std::sqrt(v_hat) + eps) + weight_decay * theta[i]);
  }
}

}  // namespace transept::ref
