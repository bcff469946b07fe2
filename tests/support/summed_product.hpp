// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "tessera/core/matrix.hpp"

namespace tessera::test {

/// A product of matrices in double, term by term, and the sizes of the terms.
struct SummedProduct {
  Matrix<double> values, magnitude;

  SummedProduct(std::int64_t rows, std::int64_t cols)
      : values(rows, cols, 0.0), magnitude(rows, cols, 0.0) {}
  void add(std::int64_t i, std::int64_t j, double term) {
    values(i, j) += term;
    magnitude(i, j) += std::abs(term);
  }
};

}  // namespace tessera::test
