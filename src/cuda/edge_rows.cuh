// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/edge_rows.hpp"

namespace tessera::cuda {

/// What says which row an edge belongs to, on its way: a kernel may ask for it long before it
/// looks. Neighbouring lanes ask for neighbouring edges: one load serves them all.
__device__ inline uint2 ask_for_row(const EdgeRows& edge_rows, EdgeOffset edge) {
  return __ldg(reinterpret_cast<const uint2*>(edge_rows.tiles) + edge / edges_per_tile);
}

/// The target of an edge.
__device__ inline VertexId row_of_edge(const EdgeRows& edge_rows, EdgeOffset edge, uint2 asked) {
  const auto place = static_cast<unsigned>(edge % edges_per_tile);
  const VertexId number = static_cast<VertexId>(asked.x) + __popc(asked.y & (~0u >> (31 - place)));
  return edge_rows.rows == nullptr ? number : __ldg(edge_rows.rows + number);
}
__device__ inline VertexId row_of_edge(const EdgeRows& edge_rows, EdgeOffset edge) {
  return row_of_edge(edge_rows, edge, ask_for_row(edge_rows, edge));
}

}  // namespace tessera::cuda
