// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "cuda/search.cuh"

namespace tessera::cuda {

__device__ inline EdgeOffset offset_at(const Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? offsets.narrow[row] : offsets.wide[row];
}

/// The same of a matrix that nothing writes while the kernel runs.
__device__ inline EdgeOffset fixed_offset_at(const Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

/// How many edges a row of such a matrix has, fewer than 2^31.
__device__ inline int degree_at(const Offsets& offsets, std::int64_t row) {
  const bool narrow = offsets.narrow != nullptr;
  const EdgeOffset begin = narrow ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
  const EdgeOffset end = narrow ? __ldg(offsets.narrow + row + 1) : __ldg(offsets.wide + row + 1);
  return static_cast<int>(end - begin);
}

/// The row whose edges include `edge`.
__device__ inline VertexId row_of(const Offsets& offsets, VertexId num_rows, EdgeOffset edge) {
  if (offsets.narrow == nullptr) return row_of_edge(offsets.wide, num_rows, edge);
  return static_cast<VertexId>(lower_bound(offsets.narrow, 0, std::int64_t{num_rows} + 1,
                                           static_cast<std::int32_t>(edge + 1)) -
                               1);
}

}  // namespace tessera::cuda
