// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/reference.hpp"

#include <algorithm>
#include <vector>

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {

/// A row of C at once: its sums do not wait for each other, and rows of B are read as they lie.
void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, MatrixView<const double> a,
          MatrixView<const double> b, double beta, MatrixView<double> c) {
  const std::int64_t inner = transpose_a == Transpose::yes ? a.rows : a.cols;
  std::vector<ExactSum> sums(static_cast<std::size_t>(c.cols));
  for (std::int64_t i = 0; i < c.rows; ++i) {
    std::fill(sums.begin(), sums.end(), ExactSum{});
    for (std::int64_t k = 0; k < inner; ++k) {
      const double left = transpose_a == Transpose::yes ? a(k, i) : a(i, k);
      for (std::int64_t j = 0; j < c.cols; ++j) {
        sums[static_cast<std::size_t>(j)] +=
            left * (transpose_b == Transpose::yes ? b(j, k) : b(k, j));
      }
    }
    for (std::int64_t j = 0; j < c.cols; ++j) {
      const double sum = sums[static_cast<std::size_t>(j)].value();
      c(i, j) = alpha * sum + (beta == 0 ? 0 : beta * c(i, j));
    }
  }
}

}  // namespace tessera::ops::reference
