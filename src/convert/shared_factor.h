// The best factor that several products can share. Given products L_k R_k, k = 1..m, with R_k [d, n], find one R [d, n]
// and maps P_k [d, d] such that
//   sum_k || L_k (R_k - P_k R) S ||_F^2,   S S^T = C the second moment of what R_k reads,
// is least. With T_k = (L_k^H L_k)^(1/2) the sum is || (T R_stacked - T P_stacked R) S ||_F^2, T block-diagonal, so by
// Eckart and Young (Psychometrika 1, 1936) R is the projection of T R_stacked on its d leading left singular vectors
// U in the metric of C: the eigenvectors of T (R_stacked C R_stacked^H) T of the largest eigenvalues. Then
//   R = U^H T R_stacked,   P_k = T_k^+ U_k,
// and no other choice of R and P_k has a smaller sum. L_k and C enter only by G_k = L_k^H L_k [d, d] and
// M = R_stacked C R_stacked^H [m d, m d]. In double; a direction in which L_k is zero, within rounding, has no map.
#pragma once

#include <Eigen/Dense>
#include <complex>
#include <limits>
#include <vector>

namespace transept {

template <class Scalar>
using DynamicMatrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

template <class Scalar>
struct SharedFactor {
  DynamicMatrix<Scalar> shared;             // R [d, n], as large as the R_k are on average
  std::vector<DynamicMatrix<Scalar>> maps;  // P_k [d, d]
};

// `stacked` [m d, n], `moment` M [m d, m d], `grams` G_k [d, d], m of them; M and G_k are Hermitian.
template <class Scalar>
SharedFactor<Scalar> shared_factor(const DynamicMatrix<Scalar>& stacked, const DynamicMatrix<Scalar>& moment,
                                   const std::vector<DynamicMatrix<Scalar>>& grams) {
  using Matrix = DynamicMatrix<Scalar>;
  const Eigen::Index m = static_cast<Eigen::Index>(grams.size()), d = stacked.rows() / m;
  Matrix weighted(stacked.rows(), stacked.cols()), metric = moment;
  std::vector<Matrix> inverses;
  for (Eigen::Index k = 0; k < m; ++k) {
    const Eigen::SelfAdjointEigenSolver<Matrix> solved(grams[static_cast<size_t>(k)]);
    const Eigen::VectorXd roots = solved.eigenvalues().cwiseMax(0).cwiseSqrt();
    const double smallest =
        roots.maxCoeff() * std::sqrt(static_cast<double>(d) * std::numeric_limits<double>::epsilon());
    const Eigen::VectorXd reciprocals = roots.unaryExpr([&](double x) { return x > smallest ? 1 / x : 0; });
    const Matrix& v = solved.eigenvectors();
    const Matrix root = v * roots.cast<Scalar>().asDiagonal() * v.adjoint();
    inverses.push_back(v * reciprocals.cast<Scalar>().asDiagonal() * v.adjoint());
    weighted.middleRows(k * d, d) = root * stacked.middleRows(k * d, d);
    metric.middleRows(k * d, d) = (root * metric.middleRows(k * d, d)).eval();
    metric.middleCols(k * d, d) = (metric.middleCols(k * d, d) * root).eval();
  }
  const Eigen::SelfAdjointEigenSolver<Matrix> solved(metric);
  const Matrix leading = solved.eigenvectors().rightCols(d);  // eigenvalues ascend
  SharedFactor<Scalar> result{leading.adjoint() * weighted, {}};
  // R may be multiplied by what the maps are divided by. Left alone, it would carry the size of L_k too.
  const double size = result.shared.norm(), wanted = stacked.norm() / std::sqrt(static_cast<double>(m));
  const double scale = size > 0 && wanted > 0 ? wanted / size : 1;
  result.shared *= scale;
  for (Eigen::Index k = 0; k < m; ++k)
    result.maps.push_back(inverses[static_cast<size_t>(k)] * leading.middleRows(k * d, d) / scale);
  return result;
}

}  // namespace transept
