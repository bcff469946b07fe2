// SPDX-License-Identifier: Apache-2.0
#include "sample/cuda/edges.hpp"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/search.cuh"

namespace tessera::sample::on_gpu {
namespace {

using cuda::EdgeKey;
using cuda::thread_number;

__device__ EdgeOffset position_of(const DrawnEdges& edges, EdgeOffset k) {
  const EdgeOffset candidate = edges.candidates[k];
  return edges.positions == nullptr ? candidate : edges.positions[candidate];
}

__global__ void number_positions_kernel(const DrawnEdges edges, EdgeKey* positions,
                                        EdgeOffset* ids) {
  const std::int64_t k = thread_number();
  if (k >= edges.count) return;
  positions[k] = static_cast<EdgeKey>(position_of(edges, k));
  ids[k] = k;
}

__global__ void key_by_ends_kernel(const DrawnEdges edges, const EdgeOffset* ids, int source_bits,
                                   EdgeKey* keys, EdgeOffset* positions) {
  const std::int64_t k = thread_number();
  if (k >= edges.count) return;
  const EdgeOffset edge = ids == nullptr ? k : ids[k];
  keys[k] = (static_cast<EdgeKey>(edges.targets[edge]) << source_bits) |
            static_cast<EdgeKey>(edges.sources[edge]);
  positions[k] = position_of(edges, edge);
}

__global__ void take_sources_kernel(const EdgeKey* keys, EdgeOffset count, int source_bits,
                                    VertexId* sources) {
  const std::int64_t k = thread_number();
  if (k < count) {
    sources[k] = static_cast<VertexId>(keys[k] & ((EdgeKey{1} << source_bits) - 1));
  }
}

/// A thread for each edge and for each vertex.
__global__ void widen_kernel(const DrawnEdges edges, const VertexId* vertices,
                             const VertexId* trees, std::int64_t num_vertices,
                             const WideNumbers wide) {
  const std::int64_t k = thread_number();
  if (k < num_vertices) {
    wide.vertices[k] = vertices[k];
    if (wide.trees != nullptr) wide.trees[k] = trees[k];
  }
  if (k >= edges.count) return;
  wide.sources[k] = edges.sources[k];
  wide.targets[k] = edges.targets[k];
  wide.edges[k] = position_of(edges, k);
}

}  // namespace

void number_positions(const DrawnEdges& edges, EdgeKey* positions, EdgeOffset* ids, Stream stream) {
  cuda::launch_each(number_positions_kernel, edges.count, stream, edges, positions, ids);
}

void key_by_ends(const DrawnEdges& edges, const EdgeOffset* ids, int source_bits, EdgeKey* keys,
                 EdgeOffset* positions, Stream stream) {
  cuda::launch_each(key_by_ends_kernel, edges.count, stream, edges, ids, source_bits, keys,
                    positions);
}

void take_sources(const EdgeKey* keys, EdgeOffset count, int source_bits, VertexId* sources,
                  Stream stream) {
  cuda::launch_each(take_sources_kernel, count, stream, keys, count, source_bits, sources);
}

void widen(const DrawnEdges& edges, const VertexId* vertices, const VertexId* trees,
           std::int64_t num_vertices, const WideNumbers& wide, Stream stream) {
  cuda::launch_each(widen_kernel, std::max(edges.count, num_vertices), stream, edges, vertices,
                    trees, num_vertices, wide);
}

}  // namespace tessera::sample::on_gpu
