// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "cuda/search.cuh"

namespace tessera::cuda {

__device__ inline EdgeOffset offset_at(const Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? offsets.narrow[row] : offsets.wide[row];
}

/// The row whose edges include `edge`.
__device__ inline VertexId row_of(const Offsets& offsets, VertexId num_rows, EdgeOffset edge) {
  if (offsets.narrow == nullptr) return row_of_edge(offsets.wide, num_rows, edge);
  return static_cast<VertexId>(lower_bound(offsets.narrow, 0, std::int64_t{num_rows} + 1,
                                           static_cast<std::int32_t>(edge + 1)) -
                               1);
}

}  // namespace tessera::cuda
