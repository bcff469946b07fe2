// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/reference.hpp"

namespace tessera::ops::reference {

void bit_gemm(BitOperand a, BitOperand b, MatrixView<std::int64_t> sums) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.rows; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < a.depth; ++k) {
        sum += std::int64_t{a.code(i, k)} * std::int64_t{b.code(j, k)};
      }
      sums(i, j) = sum;
    }
  }
}

void bit_aggregate(const Graph& graph, BitOperand b, MatrixView<std::int64_t> sums) {
  for (VertexId i = 0; i < graph.num_rows(); ++i) {
    for (std::int64_t j = 0; j < b.depth; ++j) {
      std::int64_t sum = 0;
      for (const VertexId source : graph.neighbours(i)) sum += b.code(source, j);
      sums(i, j) = sum;
    }
  }
}

}  // namespace tessera::ops::reference
