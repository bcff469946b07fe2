// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/reference.hpp"

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {

void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, MatrixView<const double> a,
          MatrixView<const double> b, double beta, MatrixView<double> c) {
  const std::int64_t inner = transpose_a == Transpose::yes ? a.rows : a.cols;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.cols; ++j) {
      ExactSum sum;
      for (std::int64_t k = 0; k < inner; ++k) {
        sum += (transpose_a == Transpose::yes ? a(k, i) : a(i, k)) *
               (transpose_b == Transpose::yes ? b(j, k) : b(k, j));
      }
      c(i, j) = alpha * sum.value() + (beta == 0 ? 0 : beta * c(i, j));
    }
  }
}

}  // namespace tessera::ops::reference
