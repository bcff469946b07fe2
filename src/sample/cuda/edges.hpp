// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/core/types.hpp"

#include "cuda/edge_arrays.hpp"

/// What becomes of drawn edges on a GPU.
namespace tessera::sample::on_gpu {

/// Edges that were drawn.
struct DrawnEdges {
  const VertexId* targets = nullptr;
  const VertexId* sources = nullptr;
  const EdgeOffset* candidates = nullptr;
  const EdgeOffset* positions = nullptr;  ///< of candidates in the graph; null: they are the same
  EdgeOffset count = 0;
};

/// positions[k] is that of edge k in the graph, ids[k] = k.
void number_positions(const DrawnEdges& edges, cuda::EdgeKey* positions, EdgeOffset* ids,
                      Stream stream);

/// keys[k] sorts by the target and the source of edge ids[k] (null: of edge k), positions[k] is
/// that edge's position in the graph. Sources have so many bits.
void key_by_ends(const DrawnEdges& edges, const EdgeOffset* ids, int source_bits,
                 cuda::EdgeKey* keys, EdgeOffset* positions, Stream stream);

/// sources[k] = the lower bits of keys[k].
void take_sources(const cuda::EdgeKey* keys, EdgeOffset count, int source_bits, VertexId* sources,
                  Stream stream);

/// What Python calls edges and vertices: numbers of 64 bits.
struct WideNumbers {
  std::int64_t* vertices = nullptr;
  std::int64_t* trees = nullptr;  ///< null: there are none
  std::int64_t* sources = nullptr;
  std::int64_t* targets = nullptr;
  std::int64_t* edges = nullptr;
};
void widen(const DrawnEdges& edges, const VertexId* vertices, const VertexId* trees,
           std::int64_t num_vertices, const WideNumbers& wide, Stream stream);

}  // namespace tessera::sample::on_gpu
