// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "support/odd_graphs.hpp"
#include "tessera/core/matrix.hpp"

namespace tessera::testing {

template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t cols, NumberKind kind, std::uint64_t seed) {
  Matrix<T> result(rows, cols);
  const auto values = random_values(rows * cols, kind, seed);
  for (std::int64_t i = 0; i < result.size(); ++i) result.data()[i] = static_cast<T>(values[i]);
  return result;
}

/// Small ones, whose sums and products are exact in every precision.
template <class T>
Matrix<T> integers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return random_matrix<T>(rows, cols, NumberKind::integer, seed);
}

}  // namespace tessera::testing
