// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/types.hpp"

namespace tessera::cuda {

/// A CSR on the GPU while self loops are added to it.
struct LoopedRows {
  Offsets old_offsets;
  const VertexId* old_cols = nullptr;
  const float* old_values = nullptr;  ///< may be null
  VertexId num_rows = 0;
  EdgeOffset num_edges = 0;
  const EdgeOffset* offsets = nullptr;  ///< of the result
  VertexId* cols = nullptr;
  float* values = nullptr;
  float loop_value = 1;
};

/// counts[row] = the row's edges and the loop it misses; counts[num_rows] = 0.
void count_with_loops(const LoopedRows& rows, EdgeOffset* counts, Stream stream);
void write_with_loops(const LoopedRows& rows, Stream stream);
/// Edge ids, in place, after the edges have moved.
void move_edge_ids(const LoopedRows& rows, EdgeOffset* ids, EdgeOffset count, Stream stream);

}  // namespace tessera::cuda
