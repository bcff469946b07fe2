// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/edge_rows.hpp"

namespace tessera::cuda {

/// The target of an edge. Neighbouring lanes ask for neighbouring edges: one load serves them all.
__device__ inline VertexId row_of_edge(const EdgeRows& edge_rows, EdgeOffset edge) {
  const auto raw = __ldg(reinterpret_cast<const uint2*>(edge_rows.tiles) + edge / edges_per_tile);
  const auto place = static_cast<unsigned>(edge % edges_per_tile);
  const VertexId number = static_cast<VertexId>(raw.x) + __popc(raw.y & (~0u >> (31 - place)));
  return edge_rows.rows == nullptr ? number : __ldg(edge_rows.rows + number);
}

}  // namespace tessera::cuda
