// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/edge_rows.cuh"
#include "ops/sddmm/cuda/edges/launch.hpp"

namespace tessera::ops {

/// The ends of one edge.
struct EdgeEnds {
  VertexId kept = 0;
  VertexId gathered = 0;

  __device__ EdgeEnds(VertexId of_target, VertexId of_source)
      : kept(of_target), gathered(of_source) {}
  /// Past the last edge, of the last.
  __device__ EdgeEnds(const EdgesLaunch& launch, EdgeOffset edge) {
    edge = min(edge, launch.num_edges - 1);
    kept = cuda::row_of_edge(launch.edge_rows, edge);
    gathered = __ldcs(launch.indices + edge);
  }

  __device__ float scale(const EdgesLaunch& launch) const {
    const float of_kept = launch.kept.scale == nullptr ? 1.0f : __ldg(launch.kept.scale + kept);
    const float of_gathered =
        launch.gathered.scale == nullptr ? 1.0f : __ldg(launch.gathered.scale + gathered);
    return of_kept * of_gathered;
  }
};

/// An edge whose ends are asked for while the edges before it are computed.
class AwaitedEdge {
 public:
  /// Past the last edge, the last.
  __device__ void ask(const EdgesLaunch& launch, EdgeOffset edge) {
    edge = min(edge, launch.num_edges - 1);
    row_ = cuda::ask_for_row(launch.edge_rows, edge);
    source_ = __ldcs(launch.indices + edge);
  }
  __device__ EdgeEnds ends(const EdgesLaunch& launch, EdgeOffset edge) const {
    edge = min(edge, launch.num_edges - 1);
    return {cuda::row_of_edge(launch.edge_rows, edge, row_), source_};
  }

 private:
  uint2 row_ = {};
  VertexId source_ = 0;
};

}  // namespace tessera::ops
